/* A module with two graph passes, which keep every bit of the results:
 *   double_by_adding   x * 2 becomes x + x for real numbers; graphs choose it as their backend
 *   cancel_negations   -(-x) becomes x; it runs on every graph
 *
 *     cc -shared -fPIC rewrites.c -I crates/module/include -o librewrites.so
 *     >>> mx.library.load('./librewrites.so')
 *     >>> net.optimize_for(x, backend='double_by_adding')
 */
#include <mxnet_module.h>
#include <stdio.h>
#include <string.h>

enum { COMPLEX64 = 13, COMPLEX128 = 14 };

static int is_two(const mx_operand *x)
{
    return (x->kind == MX_OPERAND_INT && x->integer == 2) || (x->kind == MX_OPERAND_REAL && x->real == 2.0);
}

static int32_t double_by_adding(const mx_pass_call *call)
{
    const mx_graph *graph = call->graph;
    void *context = graph->context;
    for (size_t at = 0; at < graph->num_nodes(context); at++) {
        mx_node node = graph->node_at(context, at);
        mx_operand a, b;
        if (strcmp(graph->op(context, node), "multiply") != 0 || graph->flags(context, node) & MX_NODE_WRITES)
            continue;
        if (graph->input(context, node, 0, &a) != MX_MODULE_OK || graph->input(context, node, 1, &b) != MX_MODULE_OK)
            continue;
        const mx_operand *x = is_two(&b) ? &a : is_two(&a) ? &b : NULL;
        if (!x || x->kind != MX_OPERAND_VALUE)
            continue;
        mx_spec spec;
        /* For complex numbers the product with 2 + 0i is another number where a part is infinite. */
        if (graph->spec(context, x->value, &spec) != MX_MODULE_OK || spec.dtype == COMPLEX64 || spec.dtype == COMPLEX128)
            continue;
        const mx_operand operands[] = {*x, *x};
        const mx_call sum = {.size = sizeof sum, .op = "add", .inputs = operands, .num_inputs = 2};
        /* Where the sum would be another array, as for integers and 2.0, the engine refuses and the node stays. */
        graph->replace(context, node, &sum);
    }
    return MX_MODULE_OK;
}

static int32_t cancel_negations(const mx_pass_call *call)
{
    const mx_graph *graph = call->graph;
    void *context = graph->context;
    for (size_t at = 0; at < graph->num_nodes(context); at++) {
        mx_node outer = graph->node_at(context, at);
        mx_operand between, x;
        if (strcmp(graph->op(context, outer), "negative") != 0 || graph->flags(context, outer) & MX_NODE_WRITES ||
            graph->input(context, outer, 0, &between) != MX_MODULE_OK || between.kind != MX_OPERAND_VALUE)
            continue;
        mx_node inner = graph->producer(context, between.value);
        if (inner < 0 || strcmp(graph->op(context, inner), "negative") != 0 ||
            graph->output(context, inner, 0) != between.value ||
            graph->input(context, inner, 0, &x) != MX_MODULE_OK || x.kind != MX_OPERAND_VALUE)
            continue;
        /* Refused where -(-x) is a result and x is not an array of its own in the same memory order: an input, another result, a view. */
        if (graph->replace_value(context, graph->output(context, outer, 0), x.value) == MX_MODULE_OK &&
            graph->remove(context, outer) == MX_MODULE_OK) {
            at--;
            if (graph->remove(context, inner) == MX_MODULE_OK) /* Refused while another node reads it. */
                at--;
        }
    }
    return MX_MODULE_OK;
}

static int32_t init(const mx_host *host, char *message, size_t message_capacity)
{
    const mx_pass passes[] = {
        {.size = sizeof(mx_pass), .name = "double_by_adding", .run = double_by_adding},
        {.size = sizeof(mx_pass), .name = "cancel_negations", .always = 1, .run = cancel_negations},
    };
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (host->add_pass(host->context, &passes[i]) != MX_MODULE_OK) {
            snprintf(message, message_capacity, "pass %zu was not taken", i);
            return MX_MODULE_FAILED;
        }
    return MX_MODULE_OK;
}

const mx_module *mx_module_entry(void);

const mx_module *mx_module_entry(void)
{
    static const mx_module module = {
        .size = sizeof(mx_module), .abi = MX_MODULE_ABI, .name = "rewrites", .version = "1.0", .init = init};
    return &module;
}
