/* The table between mxnet and its modules. Written by cbindgen from crates/module/src/abi.rs: see docs/design/modules.md. Do not edit. */

#ifndef MXNET_MODULE_H
#define MXNET_MODULE_H

#include <stddef.h>
#include <stdint.h>

/*
 Version of this ABI. An engine of version N loads modules of the versions N - 2 to N.
 */
#define MX_MODULE_ABI 3

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
 A kernel of an existing operator declines this call; the next kernel gets it. A partitioner leaves a node, or a part, to the engine.
 */
#define MX_MODULE_DECLINED 100

/*
 The work before an event of a stream has not ended yet. Since version 3.
 */
#define MX_MODULE_PENDING 101

/*
 Largest number of axes of an array.
 */
#define MX_MODULE_MAX_NDIM 16

/*
 No value.
 */
#define MX_PARAMETER_NONE 0

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
 For attributes of operators of the engine: a value of another kind, in `text`, as files of graphs write it: `[0, 1]`, `{"dtype": "float32"}`.
 */
#define MX_PARAMETER_JSON 6

/*
 An operand that was not given.
 */
#define MX_OPERAND_NONE 0

/*
 An array: a value of the graph.
 */
#define MX_OPERAND_VALUE 1

/*
 A truth value, in `integer`.
 */
#define MX_OPERAND_BOOL 2

/*
 An integer.
 */
#define MX_OPERAND_INT 3

/*
 A real number.
 */
#define MX_OPERAND_REAL 4

/*
 A number of another kind, which can be copied to another node but not read.
 */
#define MX_OPERAND_OTHER 5

/*
 The node changes a part of a buffer: it cannot be replaced, moved or taken by a partitioner.
 */
#define MX_NODE_WRITES 1

/*
 The node draws random numbers.
 */
#define MX_NODE_DRAWS 2

/*
 A partitioner can take the node.
 */
#define MX_NODE_CAN_BE_TAKEN 4

/*
 Calls of the node must be made as often as the program makes them (`MX_OPERATOR_IMPURE`). Since version 3.
 */
#define MX_NODE_IMPURE 8

/*
 Calls of the operator differ although operands and attributes are equal, or change more than their outputs: it has state, draws random numbers of
 its own, or writes to a file. Each call of the program is made once: graphs do not merge it with another, leave it out, repeat it or make it
 earlier, and partitioners cannot take it. Calls that do not depend on each other are made in any order, or at once.
 */
#define MX_OPERATOR_IMPURE 1

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
   The attributes, in the order of the operator's parameters that are no arrays.
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
  /*
   The stream on which the kernel enqueues its work without waiting for it: on a GPU a `CUstream`, whose context is current; on a device of a module
   that has streams, what its `make_stream` gave. Otherwise null. This structure is gone when the kernel returns, the arrays live until the work is
   done. Since version 3.
   */
  void *stream;
  /*
   Bit `i` says that operand `i` is a number: its element is in main memory and gone when the kernel returns. Always 0 on the CPU. Since version 3.
   */
  uint64_t numbers;
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
  /*
   `MX_OPERATOR_…`, added. Since version 3.
   */
  uint32_t flags;
  /*
   Must be 0. Since version 3.
   */
  uint32_t reserved;
} mx_operator;

/*
 A kernel of an existing operator, or of one that the module has added.
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
   The kind of device: "cpu", "gpu", or a kind that a module has added.
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
 Copies bytes on device `id`; the copy is done when this returns. A status other than `MX_MODULE_OK` is a failure.
 */
typedef int32_t (*mx_copy)(void *state, uint32_t id, void *to, const void *from, size_t len_bytes);

/*
 Enqueues a copy of bytes in a stream; the status is that of enqueuing it.
 */
typedef int32_t (*mx_enqueue_copy)(void *state, void *stream, void *to, const void *from, size_t len_bytes);

/*
 A kind of device: its memory, copies, and streams if it has them. The functions may be called on any thread, and on several threads at once; a
 stream is used by one thread at a time.

 Without streams the work of kernels and copies must be done when a call returns. With streams it is enqueued: the engine gives kernels a stream,
 records an event after each operation, and makes streams wait for events of others where arrays are used by both. Either all functions from
 `make_stream` on are there, or none. Work in a stream must not need the program, for instance the lock of Python's interpreter: a thread that has
 it may wait for the work.
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
   Frees a block. No work that uses it is pending.
   */
  void (*free)(void *state, uint32_t id, void *block, size_t len_bytes);
  /*
   Copies from main memory to the device. No work that uses the bytes is pending, and the copy is done when this returns.
   */
  mx_copy upload;
  /*
   Copies from the device to main memory, likewise.
   */
  mx_copy download;
  /*
   Copies between two blocks of the device, likewise.
   */
  mx_copy copy;
  /*
   Passed to the functions.
   */
  void *state;
  /*
   Makes a stream on device `id`: a queue of work that runs in order. It lives until the process ends, and serves another thread when the first
   one has ended. Returns null on failure. This and what follows since version 3.
   */
  void *(*make_stream)(void *state, uint32_t id);
  /*
   Enqueues a copy from main memory to the device. The bytes live, and nobody writes them, until the copy is done.
   */
  mx_enqueue_copy enqueue_upload;
  /*
   Enqueues a copy from the device to main memory, likewise.
   */
  mx_enqueue_copy enqueue_download;
  /*
   Enqueues a copy between two blocks of the device, likewise.
   */
  mx_enqueue_copy enqueue_copy;
  /*
   Makes an event after all work that is in the stream now. Returns null on failure.
   */
  void *(*record_event)(void *state, void *stream);
  /*
   Makes work that is enqueued later wait for an event of another stream, which may be on another device of the kind. This returns at once.
   */
  int32_t (*stream_wait)(void *state, void *stream, void *event);
  /*
   Whether the work before an event has ended, successfully or not: `MX_MODULE_OK` or, at once, `MX_MODULE_PENDING`. Another status is an error: the
   engine takes the work as ended, and as failed.
   */
  int32_t (*query_event)(void *state, void *event);
  /*
   Blocks until the work before an event has ended. `MX_MODULE_OK` if all work between the event before it in its stream and this one has succeeded,
   otherwise the status of the first that failed, with a message. Work of other operations goes on; if it uses results of what failed, the engine
   discards its results. It may be called several times, also at once.
   */
  int32_t (*wait_event)(void *state, void *event, char *message, size_t message_capacity);
  /*
   Frees an event; its work may be pending still, and streams may still have to wait for it.
   */
  void (*free_event)(void *state, void *event);
} mx_device;

/*
 A node of a graph: a number from 0, or -1 for none. It stays the same while a pass runs.
 */
typedef int64_t mx_node;

/*
 A value of a graph, that is an array which nodes read or make: a number from 0, or -1 for none.
 */
typedef int64_t mx_value;

/*
 An operand of a node.
 */
typedef struct {
  /*
   One of `MX_OPERAND_…`.
   */
  int32_t kind;
  /*
   Of a number that has one: its data type, as numbered in `mxnet.h`. -1: the number takes the type of the other operands.
   */
  int32_t dtype;
  /*
   The value, if it is one. For `MX_OPERAND_OTHER`: a number by which the engine knows it.
   */
  mx_value value;
  /*
   Value of an integer or a boolean.
   */
  int64_t integer;
  /*
   Value of a real number.
   */
  double real;
} mx_operand;

/*
 A call of an operator that becomes a node.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Name of the operator.
   */
  const char *op;
  /*
   `num_inputs` operands.
   */
  const mx_operand *inputs;
  /*
   Number of operands.
   */
  size_t num_inputs;
  /*
   `num_attributes` names.
   */
  const char *const *names;
  /*
   `num_attributes` values. Attributes that are missing have their defaults.
   */
  const mx_attribute *attributes;
  /*
   Number of attributes.
   */
  size_t num_attributes;
} mx_call;

/*
 A graph, as a pass or a partitioner sees it. The functions may be called until the pass returns, on its thread. Numbers of nodes or values that
 do not exist give -1, 0, null or a status, and change nothing. Texts are valid until the pass returns.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Passed to the functions.
   */
  void *context;
  /*
   The number of nodes.
   */
  size_t (*num_nodes)(void *context);
  /*
   The node at a position: each is behind those whose outputs it reads.
   */
  mx_node (*node_at)(void *context, size_t position);
  /*
   The name of a node's operator.
   */
  const char *(*op)(void *context, mx_node node);
  /*
   `MX_NODE_…`, added.
   */
  uint32_t (*flags)(void *context, mx_node node);
  /*
   The number of operands of a node.
   */
  size_t (*num_inputs)(void *context, mx_node node);
  /*
   Operand `index` of a node.
   */
  int32_t (*input)(void *context, mx_node node, size_t index, mx_operand *operand);
  /*
   The number of outputs of a node.
   */
  size_t (*num_outputs)(void *context, mx_node node);
  /*
   Output `index` of a node.
   */
  mx_value (*output)(void *context, mx_node node, size_t index);
  /*
   An attribute of a node by its name. `MX_MODULE_VALUE` if its operator has none of this name.
   */
  int32_t (*attribute)(void *context, mx_node node, const char *name, mx_attribute *attribute);
  /*
   The number of inputs of the graph. All inputs of a part are arguments, in the order in which it is run with them.
   */
  size_t (*num_arguments)(void *context);
  /*
   Input `index` of the graph.
   */
  mx_value (*argument)(void *context, size_t index);
  /*
   The number of results of the graph.
   */
  size_t (*num_results)(void *context);
  /*
   Result `index` of the graph.
   */
  mx_value (*result)(void *context, size_t index);
  /*
   Shape and data type of a value.
   */
  int32_t (*spec)(void *context, mx_value value, mx_spec *spec);
  /*
   Strides of a value, in elements; `strides` has `MX_MODULE_MAX_NDIM` entries. `offset` is the place of its first element in its buffer.
   */
  int32_t (*strides)(void *context, mx_value value, int64_t *strides, int64_t *offset);
  /*
   The buffer of a value. Two values of one buffer share elements.
   */
  int64_t (*buffer)(void *context, mx_value value);
  /*
   The node that makes the buffer of a value; -1 for inputs of the graph.
   */
  mx_node (*producer)(void *context, mx_value value);
  /*
   The number of nodes that read the buffer of a value.
   */
  size_t (*num_readers)(void *context, mx_value value);
  /*
   Node `index` of those that read the buffer of a value.
   */
  mx_node (*reader)(void *context, mx_value value, size_t index);
  /*
   1 if the buffer of a value is needed after the run: by a result, or by an array that the graph changes. Otherwise 0.
   */
  int32_t (*is_result)(void *context, mx_value value);
  /*
   Inserts a call before a node, or at the end for -1. The engine infers its outputs. It runs in the mode (training or inference) of that node,
   at the end in that of the last one. Returns the new node, or -1.
   */
  mx_node (*insert)(void *context, mx_node before, const mx_call *call);
  /*
   Replaces the call that computes the outputs of a node. The outputs must keep their shapes, data types and strides.
   */
  int32_t (*replace)(void *context, mx_node node, const mx_call *call);
  /*
   Replaces an operand of a node.
   */
  int32_t (*set_input)(void *context, mx_node node, size_t index, const mx_operand *operand);
  /*
   Makes all nodes and results that read `old` read `to`, which has the same shape and data type. Refused if a node that changes an operand reads
   `old`, or would compute other outputs from the strides of `to`. If `old` is a result, also refused if `to` shares its buffer with an input,
   another result or an array that the graph changes, or has other strides: then use a `copy` of `to`.
   */
  int32_t (*replace_value)(void *context, mx_value old, mx_value to);
  /*
   Removes a node whose outputs nobody reads.
   */
  int32_t (*remove)(void *context, mx_node node);
  /*
   The message of the last error of a function of this table; empty if there was none.
   */
  const char *(*error)(void *context);
} mx_graph;

/*
 Argument of a pass.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The graph.
   */
  const mx_graph *graph;
  /*
   The `state` of the pass.
   */
  void *state;
  /*
   Buffer for a message, if the pass does not return `MX_MODULE_OK`.
   */
  char *message;
  /*
   Size of the buffer in bytes, including the terminating zero.
   */
  size_t message_capacity;
} mx_pass_call;

/*
 A graph pass.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Its name, by which it can be chosen or switched off.
   */
  const char *name;
  /*
   1: it runs on every graph; 0: on graphs that choose it as their backend.
   */
  int32_t always;
  /*
   Must be 0.
   */
  int32_t reserved;
  /*
   Changes a graph. If it does not return `MX_MODULE_OK`, the graph stays as it was. It may be called on any thread.
   */
  int32_t (*run)(const mx_pass_call *call);
  /*
   Passed to the function.
   */
  void *state;
} mx_pass;

/*
 Argument of the function of a partitioner that says whether it takes a node.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The graph, which cannot be changed.
   */
  const mx_graph *graph;
  /*
   The node.
   */
  mx_node node;
  /*
   The `state` of the partitioner.
   */
  void *state;
  /*
   Buffer for a message.
   */
  char *message;
  /*
   Size of the buffer in bytes, including the terminating zero.
   */
  size_t message_capacity;
} mx_take_call;

/*
 Argument of the function of a partitioner that compiles a part.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   The part, which cannot be changed. Its inputs are the arguments of `run`, its results the outputs that `run` computes.
   */
  const mx_graph *graph;
  /*
   Receives the handle that is passed to `run` and `free`.
   */
  void **handle;
  /*
   The `state` of the partitioner.
   */
  void *state;
  /*
   Buffer for a message.
   */
  char *message;
  /*
   Size of the buffer in bytes, including the terminating zero.
   */
  size_t message_capacity;
} mx_compile_call;

/*
 A partitioner: it takes nodes of a graph, and runs parts that are made of neighbours among them. All functions may be called on any thread.
 */
typedef struct {
  /*
   The size of this structure.
   */
  size_t size;
  /*
   Its name, by which graphs choose it as their backend.
   */
  const char *name;
  /*
   Smaller parts stay as they are.
   */
  size_t min_nodes;
  /*
   Whether it takes a node: `MX_MODULE_OK` or `MX_MODULE_DECLINED`.
   */
  int32_t (*take)(const mx_take_call *call);
  /*
   Compiles a part; `MX_MODULE_DECLINED` leaves it to the engine.
   */
  int32_t (*compile)(const mx_compile_call *call);
  /*
   Runs a part: `state` is its handle, and there are no attributes. Arguments may have any strides. It may run several times at once.
   */
  mx_kernel run;
  /*
   Frees a handle. Null: handles need not be freed.
   */
  void (*free)(void *state, void *handle);
  /*
   Passed to the functions except `run`.
   */
  void *state;
} mx_partitioner;

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
  /*
   Adds a graph pass. Since version 2.
   */
  int32_t (*add_pass)(void *context, const mx_pass *pass);
  /*
   Adds a partitioner. Since version 2.
   */
  int32_t (*add_partitioner)(void *context, const mx_partitioner *partitioner);
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
   Adds operators, kernels, devices, passes and partitioners. It writes a message if it does not return `MX_MODULE_OK`.
   */
  int32_t (*init)(const mx_host *host, char *message, size_t message_capacity);
} mx_module;

#endif  /* MXNET_MODULE_H */
