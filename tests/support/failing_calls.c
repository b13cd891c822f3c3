/* A library to preload: after `arm(n, error)` the n-th call that changes files fails once with that error.
 *
 * `count()` is how many such calls there were since. Calls on what is no regular file are not counted.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_int is_armed, calls, fails_at, with;

void arm(int n, int error) {
    is_armed = 0;
    calls = 0;
    fails_at = n;
    with = error;
    is_armed = 1;
}

void disarm(void) { is_armed = 0; }

int count(void) { return calls; }

static int fails(void) {
    if (!is_armed || ++calls != fails_at) return 0;
    errno = with;
    return 1;
}

static int fails_on(int file) {
    struct stat status;
    return is_armed && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && fails();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
    return fails_on(file) ? -1 : REAL(write)(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int n) {
    return fails_on(file) ? -1 : REAL(writev)(file, parts, n);
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    return fails_on(file) ? -1 : REAL(pwrite)(file, data, size, at);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    return fails_on(file) ? -1 : REAL(pwrite64)(file, data, size, at);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *file) {
    return fails_on(fileno(file)) ? 0 : REAL(fwrite)(data, size, n, file);
}

int fflush(FILE *file) {
    return file != NULL && fails_on(fileno(file)) ? EOF : REAL(fflush)(file);
}

int fsync(int file) { return fails_on(file) ? -1 : REAL(fsync)(file); }

int fdatasync(int file) { return fails_on(file) ? -1 : REAL(fdatasync)(file); }

int ftruncate(int file, off_t size) { return fails_on(file) ? -1 : REAL(ftruncate)(file, size); }

int ftruncate64(int file, off64_t size) { return fails_on(file) ? -1 : REAL(ftruncate64)(file, size); }

int fchmod(int file, mode_t mode) { return fails_on(file) ? -1 : REAL(fchmod)(file, mode); }

int rename(const char *from, const char *to) { return fails() ? -1 : REAL(rename)(from, to); }

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;               \
        va_end(rest);                                                           \
        return flags & O_CREAT && fails() ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
