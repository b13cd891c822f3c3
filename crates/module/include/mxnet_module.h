/* The table between mxnet and its modules. Written by cbindgen from crates/module/src/abi.rs: see docs/design/modules.md. Do not edit. */

#ifndef MXNET_MODULE_H
#define MXNET_MODULE_H

#include <stddef.h>
#include <stdint.h>

/*
 Version of this ABI. An engine of version N loads modules of the versions N - 2 to N.
 */
#define MX_MODULE_ABI 1

/*
 The call succeeded.
 */
#define MX_MODULE_OK 0

/*
 The operator does not accept these shapes.
 */
#define MX_MODULE_SHAPE 1

/*
 The operator does not accept these data types.
 */
#define MX_MODULE_DTYPE 2

/*
 The operator does not accept this value of an attribute.
 */
#define MX_MODULE_VALUE 5

/*
 Any other error.
 */
#define MX_MODULE_FAILED 17

/*
 A kernel of an existing operator declines this call; the next kernel gets it.
 */
#define MX_MODULE_DECLINED 100

/*
 Largest number of axes of an array.
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
   Must be 0.
   */
  int32_t reserved;
  /*
   Value of an integer or a boolean.
   */
  int64_t integer;
  /*
   Value of a real number.
   */
  double real;
  /*
   Value of a text.
   */
  const char *text;
} mx_attribute;

/*
 A parameter of an operator that is not an array.
 */
typedef struct {
  /*
   Its name.
   */
  const char *name;
  /*
   Default. Its kind is the kind of the parameter.
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
   The data type, as numbered in `mxnet.h`.
   */
  int32_t dtype;
  /*
   The sizes.
   */
  int64_t shape[MX_MODULE_MAX_NDIM];
} mx_spec;

/*
 Argument of a shape rule.
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
   Number of operands.
   */
  size_t num_inputs;
  /*
   `num_attributes` attributes, in the order of the parameters.
   */
  const mx_attribute *attributes;
  /*
   Number of attributes.
   */
  size_t num_attributes;
  /*
   Array of `num_outputs` outputs, which the rule writes.
   */
  mx_spec *outputs;
  /*
   Number of outputs.
   */
  size_t num_outputs;
  /*
   The operator's `state`.
   */
  void *state;
  /*
   Buffer for a message, if the rule does not return `MX_MODULE_OK`.
   */
  char *message;
  /*
   Size of the buffer in bytes, including the terminating zero.
   */
  size_t message_capacity;
} mx_infer_call;

/*
 A shape rule. It must depend on shapes, data types and attributes only.
 */
typedef int32_t (*mx_infer)(const mx_infer_call *call);

/*
 An array in memory.
 */
typedef struct {
  /*
   Address of element (0, 0, ...).
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
   The data type, as numbered in `mxnet.h`.
   */
  int32_t dtype;
} mx_tensor;

/*
 Argument of a kernel.
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
   `num_inputs` operands, which must not be written. An absent one has null `data` and `shape`.
   */
  const mx_tensor *inputs;
  /*
   Number of operands.
   */
  size_t num_inputs;
  /*
   `num_outputs` outputs, which the kernel fills.
   */
  const mx_tensor *outputs;
  /*
   Number of outputs.
   */
  size_t num_outputs;
  /*
   Attributes of an operator that a module defines; none for existing operators.
   */
  const mx_attribute *attributes;
  /*
   Number of attributes.
   */
  size_t num_attributes;
  /*
   The `state` of the operator or the kernel.
   */
  void *state;
  /*
   Buffer for a message, if the kernel does not return `MX_MODULE_OK`.
   */
  char *message;
  /*
   Size of the buffer in bytes, including the terminating zero.
   */
  size_t message_capacity;
} mx_kernel_call;

/*
 A kernel. It may be called on any thread, and on several threads at once.
 */
typedef int32_t (*mx_kernel)(const mx_kernel_call *call);

/*
 An operator that a module defines.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Its name, which must be new.
   */
  const char *name;
  /*
   Documentation; may be null.
   */
  const char *doc;
  /*
   `num_inputs` names of operands.
   */
  const char *const *inputs;
  /*
   Number of operands.
   */
  size_t num_inputs;
  /*
   Number of outputs.
   */
  size_t num_outputs;
  /*
   `num_parameters` parameters.
   */
  const mx_parameter *parameters;
  /*
   Number of parameters.
   */
  size_t num_parameters;
  /*
   The shape rule. Null: each output has the shape and dtype of the first operand.
   */
  mx_infer infer;
  /*
   The kernel for the CPU.
   */
  mx_kernel kernel;
  /*
   Name of the operator that computes the gradients of the operands, with the same parameters, from the gradients of the outputs, the operands
   and the outputs, in this order. Null: no gradient flows.
   */
  const char *gradient;
  /*
   Passed to the functions.
   */
  void *state;
} mx_operator;

/*
 A kernel of an existing operator.
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
   The kind of device: "cpu", or a kind that a module has added.
   */
  const char *device;
  /*
   Kernels of higher priority are tried first. The engine's own kernel has priority 0.
   */
  int32_t priority;
  /*
   Must be 0.
   */
  int32_t reserved;
  /*
   The kernel.
   */
  mx_kernel kernel;
  /*
   Passed to the kernel.
   */
  void *state;
} mx_kernel_entry;

/*
 A kind of device: its memory and copies. All work must be done when a call returns.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Name of the kind.
   */
  const char *name;
  /*
   Number of devices.
   */
  size_t count;
  /*
   Allocates `len_bytes` bytes, aligned to 64, on device `id`. Returns null on failure.
   */
  void *(*allocate)(void *state, uint32_t id, size_t len_bytes);
  /*
   Frees a block.
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
   Copies between two blocks of the device.
   */
  int32_t (*copy)(void *state, uint32_t id, void *to, const void *from, size_t len_bytes);
  /*
   Passed to the functions.
   */
  void *state;
} mx_device;

/*
 What the engine offers a module while it is loaded. What a module adds takes effect when `init` returns `MX_MODULE_OK`; on an error nothing is
 added.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The engine's version of this ABI.
   */
  uint32_t abi;
  /*
   Always 0.
   */
  uint32_t reserved;
  /*
   Passed to the functions.
   */
  void *context;
  /*
   Adds an operator. The structure and everything that it points to is copied, except the functions and the state.
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
 Description of a module. Its library exports `const mx_module *mx_module_entry(void)`.
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
   Must be 0.
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
   Adds operators, kernels and devices. It writes a message if it does not return `MX_MODULE_OK`.
   */
  int32_t (*init)(const mx_host *host, char *message, size_t message_capacity);
} mx_module;

#endif  /* MXNET_MODULE_H */
