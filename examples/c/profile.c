/* Record what operators do, print the statistics, and write a trace for a viewer of Chrome's trace events.
 *
 *     cc profile.c -I crates/ffi/c/include -L target/release -lmxnet -o profile
 *     ./profile trace.json                                         # a few operators
 *     ./profile trace.json net-symbol.json net-0000.params 2 4     # and a graph, on zeros of the shape (2, 4)
 */
#include "check.h"

#define MAX_AXES 8
#define MAX_OUTPUTS 16

/* Calls an operator with two operands and one output. */
static mx_handle call(const char *op, mx_handle lhs, mx_handle rhs)
{
    mx_handle result = 0;
    mx_arg args[] = {{.kind = MX_ARG_ARRAY, .value.array = lhs}, {.kind = MX_ARG_ARRAY, .value.array = rhs}};
    mx_outputs out = {.size = sizeof out, .arrays = &result, .capacity = 1};
    check(mx_invoke(op, args, 2, &out));
    return result;
}

/* Three steps, each a range of the trace; the operators of a step have the scope `layer:`. */
static void run_operators(void)
{
    const int64_t shape[2] = {64, 64};
    mx_handle x;
    check(mx_array_create(NULL, shape, 2, MX_FLOAT32, NULL, &x));
    for (int64_t step = 0; step < 3; step++) {
        check(mx_profiler_range_begin("example", "step"));
        check(mx_profiler_scope_begin("layer"));
        mx_handle product = call("matmul", x, x);
        mx_handle sum = call("add", product, x);
        check(mx_profiler_scope_end());
        check(mx_profiler_range_end());
        check(mx_profiler_counter("example", "steps", step + 1));
        check(mx_free(product));
        check(mx_free(sum));
    }
    check(mx_free(x));
}

/* One run of a graph that `HybridBlock.export` wrote. */
static void run_graph(const char *symbol_file, const char *param_file, const int64_t *shape, size_t ndim)
{
    mx_handle graph, x, results[MAX_OUTPUTS];
    check(mx_graph_load(symbol_file, param_file, &graph));
    check(mx_array_create(NULL, shape, ndim, MX_FLOAT32, NULL, &x));
    mx_outputs out = {.size = sizeof out, .arrays = results, .capacity = MAX_OUTPUTS};
    check(mx_graph_run(graph, &x, 1, &out));
    for (size_t i = 0; i < out.len; i++)
        check(mx_free(results[i]));
    check(mx_free(x));
    check(mx_free(graph));
}

/* The statistics as a table. The first call says how long the text is. */
static void print_summary(void)
{
    size_t len_bytes;
    check(mx_profiler_summary(NULL, NULL, 0, 0, NULL, 0, &len_bytes));
    char *text = malloc(len_bytes);
    if (text == NULL)
        exit(1);
    check(mx_profiler_summary(NULL, NULL, 0, 0, text, len_bytes, &len_bytes));
    fputs(text, stdout);
    free(text);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc == 3 || argc > 4 + MAX_AXES) {
        fprintf(stderr, "usage: %s trace.json [net-symbol.json net-0000.params [size of an axis]...]\n", argv[0]);
        return 2;
    }
    check(mx_profiler_configure(argv[1], "all"));
    check(mx_profiler_start());
    run_operators();
    if (argc > 3) {
        int64_t shape[MAX_AXES];
        for (int i = 4; i < argc; i++)
            shape[i - 4] = strtoll(argv[i], NULL, 10);
        run_graph(argv[2], argv[3], shape, (size_t)(argc - 4));
    }
    check(mx_profiler_stop());
    print_summary();
    check(mx_profiler_dump(1));
    printf("trace: %s\n", argv[1]);
    size_t left;
    check(mx_handle_count(&left));
    printf("handles left: %zu\n", left);
    return 0;
}
