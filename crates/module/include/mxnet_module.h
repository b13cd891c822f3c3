/* The table between mxnet and its modules. Written by cbindgen from crates/module/src/abi.rs: see docs/design/modules.md. Do not edit. */

#ifndef MXNET_MODULE_H
#define MXNET_MODULE_H

#include <stddef.h>
#include <stdint.h>

/*
 The version that this table has. An engine of version N takes modules of the versions N - 2 to N.
 */
#define MX_MODULE_ABI 1

/*
 The call did what it should.
 */
#define MX_MODULE_OK 0

/*
 Shapes that the operator does not take.
 */
#define MX_MODULE_SHAPE 1

/*
 Data types that the operator does not take.
 */
#define MX_MODULE_DTYPE 2

/*
 An attribute that has no meaning.
 */
#define MX_MODULE_VALUE 5

/*
 Anything else that went wrong.
 */
#define MX_MODULE_FAILED 17

/*
 A kernel of an existing operator leaves this call to the next one.
 */
#define MX_MODULE_DECLINED 100

/*
 The most axes that an array has in the table.
 */
#define MX_MODULE_MAX_NDIM 16

/*
 An integer attribute.
 */
#define MX_PARAMETER_INT 2

/*
 A truth value, in `integer`.
 */
#define MX_PARAMETER_BOOL 1

/*
 A real number.
 */
#define MX_PARAMETER_REAL 3

/*
 Text.
 */
#define MX_PARAMETER_TEXT 5

/*
 The value of an attribute.
 */
typedef struct {
  /*
   One of `MX_PARAMETER_…`.
   */
  int32_t kind;
  /*
   0.
   */
  int32_t reserved;
  /*
   Integers and truth values.
   */
  int64_t integer;
  /*
   Real numbers.
   */
  double real;
  /*
   Text.
   */
  const char *text;
} mx_attribute;

/*
 A parameter of an operator that is no array.
 */
typedef struct {
  /*
   Its name.
   */
  const char *name;
  /*
   What it is when left out; its kind is what the parameter takes.
   */
  mx_attribute value;
} mx_parameter;

/*
 Shape and data type of an array.
 */
typedef struct {
  /*
   The number of axes.
   */
  int32_t ndim;
  /*
   The data type, by the numbers of `mxnet.h`.
   */
  int32_t dtype;
  /*
   The sizes.
   */
  int64_t shape[MX_MODULE_MAX_NDIM];
} mx_spec;

/*
 What a shape rule is given.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   `num_inputs` operands.
   */
  const mx_spec *inputs;
  /*
   How many.
   */
  size_t num_inputs;
  /*
   `num_attributes` attributes, in the order of the parameters.
   */
  const mx_attribute *attributes;
  /*
   How many.
   */
  size_t num_attributes;
  /*
   Room for `num_outputs` outputs, which the rule writes.
   */
  mx_spec *outputs;
  /*
   How many.
   */
  size_t num_outputs;
  /*
   The operator's.
   */
  void *state;
  /*
   Room for a message, if the rule does not return `MX_MODULE_OK`.
   */
  char *message;
  /*
   For how many bytes, the zero byte included.
   */
  size_t message_capacity;
} mx_infer_call;

/*
 A shape rule: it looks at shapes, data types and attributes, and at nothing else.
 */
typedef int32_t (*mx_infer)(const mx_infer_call *call);

/*
 An array in memory.
 */
typedef struct {
  /*
   The element at position (0, 0, …).
   */
  void *data;
  /*
   `ndim` sizes.
   */
  const int64_t *shape;
  /*
   `ndim` strides, in elements.
   */
  const int64_t *strides;
  /*
   The number of axes.
   */
  int32_t ndim;
  /*
   The data type, by the numbers of `mxnet.h`.
   */
  int32_t dtype;
} mx_tensor;

/*
 What a kernel is given.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The operator's name.
   */
  const char *op;
  /*
   `num_inputs` operands, which are only read. An absent one has no `data` and no `shape`.
   */
  const mx_tensor *inputs;
  /*
   How many.
   */
  size_t num_inputs;
  /*
   `num_outputs` outputs, which the kernel fills.
   */
  const mx_tensor *outputs;
  /*
   How many.
   */
  size_t num_outputs;
  /*
   Attributes of an operator of a module; an existing operator has none here.
   */
  const mx_attribute *attributes;
  /*
   How many.
   */
  size_t num_attributes;
  /*
   The operator's, or the kernel's.
   */
  void *state;
  /*
   Room for a message, if the kernel does not return `MX_MODULE_OK`.
   */
  char *message;
  /*
   For how many bytes, the zero byte included.
   */
  size_t message_capacity;
} mx_kernel_call;

/*
 A kernel. It may run on any thread, beside itself.
 */
typedef int32_t (*mx_kernel)(const mx_kernel_call *call);

/*
 An operator of a module.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Its name, which no other operator has.
   */
  const char *name;
  /*
   What it does; null for nothing.
   */
  const char *doc;
  /*
   `num_inputs` names of operands.
   */
  const char *const *inputs;
  /*
   How many.
   */
  size_t num_inputs;
  /*
   How many outputs.
   */
  size_t num_outputs;
  /*
   `num_parameters` parameters.
   */
  const mx_parameter *parameters;
  /*
   How many.
   */
  size_t num_parameters;
  /*
   The shape rule. Null: each output is like the first operand.
   */
  mx_infer infer;
  /*
   The kernel for the CPU.
   */
  mx_kernel kernel;
  /*
   The operator that computes the gradients of the operands, with the same parameters, from the outputs' gradients, the operands and the outputs,
   in this order. Null: no gradient flows.
   */
  const char *gradient;
  /*
   Handed to the functions.
   */
  void *state;
} mx_operator;

/*
 A kernel of an operator that is there already.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The operator.
   */
  const char *op;
  /*
   The kind of device: "cpu", or one that a module has added.
   */
  const char *device;
  /*
   Kernels of higher priority are asked first; the engine's own has 0.
   */
  int32_t priority;
  /*
   0.
   */
  int32_t reserved;
  /*
   The kernel.
   */
  mx_kernel kernel;
  /*
   Handed to the kernel.
   */
  void *state;
} mx_kernel_entry;

/*
 A kind of device: memory of its own, and copies. Its work is done when a call returns.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The name of the kind.
   */
  const char *name;
  /*
   How many devices there are.
   */
  size_t count;
  /*
   A block of so many bytes, aligned to 64, on device `id`; null if there is none.
   */
  void *(*allocate)(void *state, uint32_t id, size_t len_bytes);
  /*
   Gives a block back.
   */
  void (*free)(void *state, uint32_t id, void *block, size_t len_bytes);
  /*
   Copies from main memory to the device.
   */
  int32_t (*upload)(void *state, uint32_t id, void *to, const void *from, size_t len_bytes);
  /*
   Copies from the device to main memory.
   */
  int32_t (*download)(void *state, uint32_t id, void *to, const void *from, size_t len_bytes);
  /*
   Copies on the device.
   */
  int32_t (*copy)(void *state, uint32_t id, void *to, const void *from, size_t len_bytes);
  /*
   Handed to the functions.
   */
  void *state;
} mx_device;

/*
 What the engine offers a module while it is loaded. What is added counts once `init` has returned `MX_MODULE_OK`; else nothing of it does.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The engine's version of the table.
   */
  uint32_t abi;
  /*
   0.
   */
  uint32_t reserved;
  /*
   Handed to the functions.
   */
  void *context;
  /*
   Adds an operator. The structure and what it points to are copied, but for the functions and the state.
   */
  int32_t (*add_operator)(void *context, const mx_operator *operator);
  /*
   Adds a kernel.
   */
  int32_t (*add_kernel)(void *context, const mx_kernel_entry *kernel);
  /*
   Adds a kind of device.
   */
  int32_t (*add_device)(void *context, const mx_device *device);
} mx_host;

/*
 What a library that is a module answers: it exports `const mx_module *mx_module_entry(void)`.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   `MX_MODULE_ABI` of the header that the module was compiled with.
   */
  uint32_t abi;
  /*
   0.
   */
  uint32_t reserved;
  /*
   The module's name.
   */
  const char *name;
  /*
   The module's version.
   */
  const char *version;
  /*
   Adds what the module has. It writes a message if it returns anything but `MX_MODULE_OK`.
   */
  int32_t (*init)(const mx_host *host, char *message, size_t message_capacity);
} mx_module;

#endif  /* MXNET_MODULE_H */
