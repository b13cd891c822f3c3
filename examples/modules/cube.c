/* A module with one operator, its gradient, and a kernel of an operator that is there already.
 *
 *     cc -shared -fPIC cube.c -I crates/module/include -o libcube.so
 *     >>> mx.library.load('./libcube.so')
 *     >>> mx.npx.cube(x, scale=2.0)
 */
#include <mxnet_module.h>
#include <stdio.h>

#define FLOAT32 11
#define FLOAT64 12

/* The position in memory, in elements, of the element number `at` in C order. */
static int64_t place(const mx_tensor *x, int64_t at)
{
    int64_t offset = 0;
    for (int axis = x->ndim - 1; axis >= 0; axis--) {
        offset += at % x->shape[axis] * x->strides[axis];
        at /= x->shape[axis];
    }
    return offset;
}

static int64_t length(const mx_tensor *x)
{
    int64_t len = 1;
    for (int axis = 0; axis < x->ndim; axis++)
        len *= x->shape[axis];
    return len;
}

static double get(const mx_tensor *x, int64_t at)
{
    int64_t i = place(x, at);
    return x->dtype == FLOAT32 ? ((const float *)x->data)[i] : ((const double *)x->data)[i];
}

static void put(const mx_tensor *x, int64_t at, double value)
{
    int64_t i = place(x, at);
    if (x->dtype == FLOAT32)
        ((float *)x->data)[i] = (float)value;
    else
        ((double *)x->data)[i] = value;
}

/* Real floating-point operands of one shape and dtype; the output is like the first. */
static int32_t like_first(const mx_infer_call *call)
{
    for (size_t i = 0; i < call->num_inputs; i++) {
        const mx_spec *x = &call->inputs[i];
        if (x->dtype != FLOAT32 && x->dtype != FLOAT64) {
            snprintf(call->message, call->message_capacity, "operand %zu must be float32 or float64", i);
            return MX_MODULE_DTYPE;
        }
        if (x->dtype != call->inputs[0].dtype || x->ndim != call->inputs[0].ndim) {
            snprintf(call->message, call->message_capacity, "operand %zu is not like the first", i);
            return MX_MODULE_SHAPE;
        }
    }
    call->outputs[0] = call->inputs[0];
    return MX_MODULE_OK;
}

/* scale * x**3 */
static int32_t cube(const mx_kernel_call *call)
{
    const mx_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    double scale = call->attributes[0].real;
    for (int64_t at = 0, len = length(x); at < len; at++) {
        double value = get(x, at);
        put(y, at, scale * value * value * value);
    }
    return MX_MODULE_OK;
}

/* 3 * scale * x**2 * dy: the operands are dy, x and y. */
static int32_t cube_gradient(const mx_kernel_call *call)
{
    const mx_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *dx = &call->outputs[0];
    double scale = call->attributes[0].real;
    for (int64_t at = 0, len = length(x); at < len; at++)
        put(dx, at, 3 * scale * get(x, at) * get(x, at) * get(dy, at));
    return MX_MODULE_OK;
}

/* How often the kernel of `matmul` below has computed a product: which the operator `cube_matmuls` returns. */
static long num_matmuls;

/* Products of two matrices of float64; everything else is left to the engine. */
static int32_t matmul(const mx_kernel_call *call)
{
    const mx_tensor *a = &call->inputs[0], *b = &call->inputs[1], *c = &call->outputs[0];
    if (a->ndim != 2 || b->ndim != 2 || a->dtype != FLOAT64 || b->dtype != FLOAT64)
        return MX_MODULE_DECLINED;
    for (int64_t i = 0; i < a->shape[0]; i++)
        for (int64_t j = 0; j < b->shape[1]; j++) {
            double sum = 0;
            for (int64_t k = 0; k < a->shape[1]; k++)
                sum += ((const double *)a->data)[i * a->strides[0] + k * a->strides[1]] *
                       ((const double *)b->data)[k * b->strides[0] + j * b->strides[1]];
            ((double *)c->data)[i * c->strides[0] + j * c->strides[1]] = sum;
        }
    num_matmuls++;
    return MX_MODULE_OK;
}

static int32_t one_number(const mx_infer_call *call)
{
    call->outputs[0].ndim = 0;
    call->outputs[0].dtype = FLOAT64;
    return MX_MODULE_OK;
}

static int32_t matmuls(const mx_kernel_call *call)
{
    *(double *)call->outputs[0].data = (double)num_matmuls;
    return MX_MODULE_OK;
}

static int32_t init(const mx_host *host, char *message, size_t message_capacity)
{
    static const char *const operands[] = {"x"}, *const gradient_operands[] = {"dy", "x", "y"};
    static const mx_parameter scale = {"scale", {.kind = MX_PARAMETER_REAL, .real = 1.0}};
    const mx_operator operators[] = {
        {.size = sizeof(mx_operator), .name = "cube", .doc = "scale * x**3 of every element.", .inputs = operands,
         .num_inputs = 1, .num_outputs = 1, .parameters = &scale, .num_parameters = 1, .infer = like_first,
         .kernel = cube, .gradient = "cube_gradient"},
        {.size = sizeof(mx_operator), .name = "cube_gradient", .inputs = gradient_operands, .num_inputs = 3,
         .num_outputs = 1, .parameters = &scale, .num_parameters = 1, .infer = like_first, .kernel = cube_gradient},
        {.size = sizeof(mx_operator), .name = "cube_matmuls", .num_outputs = 1, .infer = one_number, .kernel = matmuls,
         .flags = MX_OPERATOR_IMPURE}, /* the answer changes from call to call */
    };
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (host->add_operator(host->context, &operators[i]) != MX_MODULE_OK) {
            snprintf(message, message_capacity, "operator %zu was not taken", i);
            return MX_MODULE_FAILED;
        }
    const mx_kernel_entry kernel = {.size = sizeof kernel, .op = "matmul", .device = "cpu", .priority = 1, .kernel = matmul};
    return host->add_kernel(host->context, &kernel);
}

const mx_module *mx_module_entry(void);

const mx_module *mx_module_entry(void)
{
    static const mx_module module = {
        .size = sizeof(mx_module), .abi = MX_MODULE_ABI, .name = "cube", .version = "1.0", .init = init};
    return &module;
}
