/* Cancels a thread that calls `matmul` and `mx_save` in a loop: `cancelled FILE`. Prints what the cancelled thread left behind. */
#include <mxnet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const char *path;
static mx_handle x;
static atomic_int num_calls;

static void check(int32_t status)
{
    if (status != MX_OK) {
        fprintf(stderr, "status %d\n", status);
        exit(1);
    }
}

static void call(void)
{
    const mx_arg args[] = {{.kind = MX_ARG_ARRAY, .value.array = x}, {.kind = MX_ARG_ARRAY, .value.array = x}};
    const char *const names[] = {"product"};
    mx_handle product = 0;
    mx_outputs out = {.size = sizeof out, .arrays = &product, .capacity = 1};
    check(mx_invoke("matmul", args, 2, &out));
    check(mx_save(path, names, &product, 1)); /* opening, writing and closing files are cancellation points */
    check(mx_free(product));
}

static void *call_for_ever(void *unused)
{
    for (;;) {
        call();
        atomic_fetch_add(&num_calls, 1);
        pthread_testcancel();
    }
    return unused;
}

int main(int argc, char **argv)
{
    enum { SIZE = 64 };
    static float values[SIZE * SIZE];
    const int64_t shape[] = {SIZE, SIZE};
    if (argc != 2)
        return 2;
    path = argv[1];
    check(mx_array_create(values, shape, 2, MX_FLOAT32, NULL, &x));
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;
        const int before = atomic_load(&num_calls);
        if (pthread_create(&thread, NULL, call_for_ever, NULL) != 0)
            return 3;
        while (atomic_load(&num_calls) < before + i % 3)
            ;
        pthread_cancel(thread);
        if (pthread_join(thread, &result) != 0 || result != PTHREAD_CANCELED)
            return 4;
    }
    call();
    check(mx_wait_all());
    size_t num_handles = 0;
    check(mx_handle_count(&num_handles));
    printf("handles: %zu\n", num_handles);
    return 0;
}
