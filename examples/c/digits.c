/* Multiply two arrays without a copy, and predict digits with a network that Python has trained.
 *
 *     cc digits.c -I crates/ffi/c/include -L target/release -lmxnet -o digits
 *     ./digits network.safetensors predictions.safetensors
 */
#include "check.h"
#include <string.h>

static mx_arg array(mx_handle x)
{
    return (mx_arg){.kind = MX_ARG_ARRAY, .value.array = x};
}

static mx_arg named_array(const char *name, mx_handle x)
{
    return (mx_arg){.name = name, .kind = MX_ARG_ARRAY, .value.array = x};
}

static mx_arg ints(const char *name, const int64_t *data, size_t len)
{
    return (mx_arg){.name = name, .kind = MX_ARG_INTS, .len = len, .value.ints = data};
}

static mx_arg word(const char *name, const char *text)
{
    return (mx_arg){.name = name, .kind = MX_ARG_TEXT, .value.text = text};
}

static mx_arg truth(const char *name, int is_true)
{
    return (mx_arg){.name = name, .kind = MX_ARG_BOOL, .value.integer = is_true};
}

/* Calls an operator with one output. */
static mx_handle call(const char *op, const mx_arg *args, size_t nargs)
{
    mx_handle result = 0;
    mx_outputs out = {.size = sizeof out, .arrays = &result, .capacity = 1};
    check(mx_invoke(op, args, nargs, &out));
    return result;
}

/* c = a * b, all three in memory of this program. */
static void multiply(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {10, 10, 10, 0.5f, 0.5f, 0.5f}, c[6] = {0};
    const int64_t shape[2] = {2, 3};
    float *data[3] = {a, b, c};
    mx_handle x[3];
    for (int i = 0; i < 3; i++)
        check(mx_array_from_memory(data[i], shape, 2, MX_FLOAT32, NULL, NULL, &x[i]));
    mx_arg args[] = {array(x[0]), array(x[1]), named_array("out", x[2])};
    call("multiply", args, 3);
    printf("product: %g %g %g %g %g %g\n", c[0], c[1], c[2], c[3], c[4], c[5]);
    for (int i = 0; i < 3; i++)
        check(mx_free(x[i]));
}

#define MAX_ARRAYS 32

/* The arrays of a file, by name. */
static size_t num_arrays;
static mx_handle loaded[MAX_ARRAYS];
static char names[2048];

static mx_handle find(const char *wanted)
{
    const char *name = names;
    for (size_t i = 0; i < num_arrays; i++) {
        size_t len = strcspn(name, "\n");
        if (strlen(wanted) == len && strncmp(name, wanted, len) == 0)
            return loaded[i];
        name += len + 1;
    }
    fprintf(stderr, "the file has no array `%s`\n", wanted);
    exit(1);
}

/* Frees `x` and returns what replaces it. */
static mx_handle then(mx_handle x, mx_handle next)
{
    check(mx_free(x));
    return next;
}

static mx_handle convolution(mx_handle x, const char *prefix)
{
    static const int64_t three[2] = {3, 3}, one[2] = {1, 1};
    char name[5][32];
    const char *parts[5] = {"weight", "gamma", "beta", "running_mean", "running_var"};
    for (int i = 0; i < 5; i++)
        snprintf(name[i], sizeof name[i], "%s.%s", prefix, parts[i]);
    mx_arg conv[] = {array(x), array(find(name[0])), ints("kernel", three, 2), ints("pad", one, 2), truth("no_bias", 1)};
    mx_handle y = call("convolution", conv, 5);
    mx_arg norm[] = {array(y), array(find(name[1])), array(find(name[2])), array(find(name[3])), array(find(name[4])),
                     {.name = "eps", .kind = MX_ARG_REAL, .value.real = 1e-5}, truth("fix_gamma", 0)};
    y = then(y, call("batch_norm", norm, 7));
    mx_arg relu[] = {array(y), word("act_type", "relu")};
    return then(y, call("activation", relu, 2));
}

static mx_handle predict(mx_handle images)
{
    static const int64_t two[2] = {2, 2};
    mx_handle x = convolution(images, "conv1");
    x = then(x, convolution(x, "conv2"));
    mx_arg pool[] = {array(x), ints("kernel", two, 2), word("pool_type", "max"), ints("stride", two, 2)};
    x = then(x, call("pooling", pool, 4));
    mx_arg dense1[] = {array(x), array(find("dense1.weight")), array(find("dense1.bias")), truth("no_bias", 0)};
    x = then(x, call("fully_connected", dense1, 4));
    mx_arg relu[] = {array(x), word("act_type", "relu")};
    x = then(x, call("activation", relu, 2));
    mx_arg dense2[] = {array(x), array(find("dense2.weight")), array(find("dense2.bias")), truth("no_bias", 0)};
    return then(x, call("fully_connected", dense2, 4));
}

int main(int argc, char **argv)
{
    printf("mxnet %s, ABI %u\n", mx_version(), mx_abi_version());
    multiply();
    if (argc == 3) {
        size_t len_bytes;
        check(mx_load(argv[1], loaded, MAX_ARRAYS, &num_arrays, names, sizeof names, &len_bytes));
        mx_handle scores = predict(find("images"));
        const char *name = "scores";
        check(mx_save(argv[2], &name, &scores, 1));
        check(mx_free(scores));
        for (size_t i = 0; i < num_arrays; i++)
            check(mx_free(loaded[i]));
    }
    size_t left;
    check(mx_handle_count(&left));
    printf("handles left: %zu\n", left);
    return 0;
}
