/* Multiply two arrays without a copy, and predict digits with a network that Python has exported.
 *
 *     cc digits.c -I crates/ffi/c/include -L target/release -lmxnet -o digits
 *     ./digits net-symbol.json net-0000.params images.safetensors scores.safetensors
 *
 * `HybridBlock.export` writes the first two files. The third has one array, the images.
 */
#include "check.h"

static mx_arg array(mx_handle x)
{
    return (mx_arg){.kind = MX_ARG_ARRAY, .value.array = x};
}

static mx_arg named_array(const char *name, mx_handle x)
{
    return (mx_arg){.name = name, .kind = MX_ARG_ARRAY, .value.array = x};
}

static mx_arg named_integer(const char *name, int64_t x)
{
    return (mx_arg){.name = name, .kind = MX_ARG_INT, .value.integer = x};
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

/* The only array of a file. */
static mx_handle load(const char *path)
{
    mx_handle x = 0;
    char name[256];
    size_t num_arrays, len_bytes;
    check(mx_load(path, &x, 1, &num_arrays, name, sizeof name, &len_bytes));
    if (x == 0) {
        fprintf(stderr, "%s has %zu arrays, 1 is needed\n", path, num_arrays);
        exit(1);
    }
    return x;
}

/* The digit of each row of scores, (n, 10). */
static void print_digits(mx_handle scores)
{
    mx_arg args[] = {array(scores), named_integer("axis", 1)};
    mx_handle digits = call("argmax", args, 2);
    size_t len_bytes;
    void *data;
    check(mx_array_len_bytes(digits, &len_bytes));
    check(mx_array_data(digits, &data));
    printf("digits:");
    for (size_t i = 0; i < len_bytes / sizeof(int64_t); i++)
        printf(" %d", (int)((const int64_t *)data)[i]);
    printf("\n");
    check(mx_free(digits));
}

int main(int argc, char **argv)
{
    printf("mxnet %s, ABI %u\n", mx_version(), mx_abi_version());
    multiply();
    if (argc == 5) {
        mx_handle graph, scores, images = load(argv[3]);
        check(mx_graph_load(argv[1], argv[2], &graph));
        mx_outputs out = {.size = sizeof out, .arrays = &scores, .capacity = 1};
        check(mx_graph_run(graph, &images, 1, &out));
        print_digits(scores);
        const char *name = "scores";
        check(mx_save(argv[4], &name, &scores, 1));
        check(mx_free(scores));
        check(mx_free(images));
        check(mx_free(graph));
    }
    size_t left;
    check(mx_handle_count(&left));
    printf("handles left: %zu\n", left);
    return 0;
}
