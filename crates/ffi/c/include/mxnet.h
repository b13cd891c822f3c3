/* The C ABI of mxnet. Written by cbindgen from crates/ffi/c/src: see docs/design/c-abi.md. Do not edit. */

#ifndef MXNET_H
#define MXNET_H

#include <stddef.h>
#include <stdint.h>

/*
 The call did what it should.
 */
#define MX_OK 0

/*
 Shapes do not fit the operator or one another.
 */
#define MX_ERROR_SHAPE 1

/*
 A data type, or a type of argument, that is not taken.
 */
#define MX_ERROR_DTYPE 2

/*
 An axis out of range or repeated.
 */
#define MX_ERROR_AXIS 3

/*
 An index out of range.
 */
#define MX_ERROR_INDEX 4

/*
 An argument that has no meaning here: null, a freed handle, a word that is not known.
 */
#define MX_ERROR_VALUE 5

/*
 A matrix without the factorisation that was asked for.
 */
#define MX_ERROR_LINALG 6

/*
 A number that the data type cannot hold.
 */
#define MX_ERROR_OVERFLOW 7

/*
 A step or a number of parts of zero.
 */
#define MX_ERROR_ZERO_DIVISION 8

/*
 Operands on different devices, or a device that is not there.
 */
#define MX_ERROR_DEVICE 9

/*
 No memory.
 */
#define MX_ERROR_MEMORY 10

/*
 Not available for these arguments; the message names the alternative.
 */
#define MX_ERROR_UNSUPPORTED 11

/*
 Reading or writing files.
 */
#define MX_ERROR_IO 12

/*
 A gradient was asked for that does not exist.
 */
#define MX_ERROR_AUTOGRAD 13

/*
 A floating-point error that the thread asked to be told of.
 */
#define MX_ERROR_FLOATING_POINT 14

/*
 The values of an array without values were asked for.
 */
#define MX_ERROR_ABSTRACT 15

/*
 The wait was interrupted.
 */
#define MX_ERROR_INTERRUPTED 16

/*
 A broken invariant: please report it.
 */
#define MX_ERROR_INTERNAL 17

/*
 Truth values of one byte.
 */
#define MX_BOOL 0

/*
 Signed integers of 8 bits.
 */
#define MX_INT8 1

/*
 Signed integers of 16 bits.
 */
#define MX_INT16 2

/*
 Signed integers of 32 bits.
 */
#define MX_INT32 3

/*
 Signed integers of 64 bits.
 */
#define MX_INT64 4

/*
 Unsigned integers of 8 bits.
 */
#define MX_UINT8 5

/*
 Unsigned integers of 16 bits.
 */
#define MX_UINT16 6

/*
 Unsigned integers of 32 bits.
 */
#define MX_UINT32 7

/*
 Unsigned integers of 64 bits.
 */
#define MX_UINT64 8

/*
 IEEE 754 binary16.
 */
#define MX_FLOAT16 9

/*
 bfloat16.
 */
#define MX_BFLOAT16 10

/*
 IEEE 754 binary32.
 */
#define MX_FLOAT32 11

/*
 IEEE 754 binary64.
 */
#define MX_FLOAT64 12

/*
 Pairs of binary32.
 */
#define MX_COMPLEX64 13

/*
 Pairs of binary64.
 */
#define MX_COMPLEX128 14

/*
 Nothing: the parameter is `None`.
 */
#define MX_ARG_NONE 0

/*
 A truth value, in `integer`.
 */
#define MX_ARG_BOOL 1

/*
 An integer, in `integer`.
 */
#define MX_ARG_INT 2

/*
 A real number, in `real`.
 */
#define MX_ARG_REAL 3

/*
 A complex number: real and imaginary part, in `reals`.
 */
#define MX_ARG_COMPLEX 4

/*
 Text, in `text`: a word, the name of a data type or of a device, an index expression such as "1:3, ..., newaxis".
 */
#define MX_ARG_TEXT 5

/*
 `len` texts, in `texts`.
 */
#define MX_ARG_TEXTS 6

/*
 `len` integers, in `ints`.
 */
#define MX_ARG_INTS 7

/*
 `len` real numbers, in `reals`.
 */
#define MX_ARG_REALS 8

/*
 An array, in `array`.
 */
#define MX_ARG_ARRAY 9

/*
 `len` arrays, in `arrays`; 0 is an absent one.
 */
#define MX_ARG_ARRAYS 10

/*
 A data type, in `integer`: one of `MX_BOOL` … `MX_COMPLEX128`.
 */
#define MX_ARG_DTYPE 11

/*
 The version of the ABI that this header describes. It counts additions; functions and fields never go away.
 */
#define MX_ABI_VERSION 1

/*
 The facts of a failure. Set `size` to `sizeof(mx_error)`: later versions append fields.
 */
typedef struct {
  /*
   `sizeof(mx_error)` of the caller.
   */
  size_t size;
  /*
   One of `MX_ERROR_…`; `MX_OK` if no call of this thread has failed yet.
   */
  int32_t status;
  /*
   0.
   */
  int32_t reserved;
  /*
   The operator or function that failed; empty if it is not known. Valid until the next failure of this thread.
   */
  const char *op;
  /*
   The whole message: what was found, what is required, and the operands. Valid until the next failure of this thread.
   */
  const char *message;
  /*
   What would work; empty if nothing is known. Valid until the next failure of this thread.
   */
  const char *hint;
} mx_error;

/*
 An object of the library: an array, a scope or a graph. 0 is none.
 */
typedef uint64_t mx_handle;

/*
 Called with its context when nobody needs the memory any more, on whatever thread.
 */
typedef void (*mx_deleter)(void *context);

/*
 What an argument holds.
 */
typedef union {
  /*
   `MX_ARG_BOOL`, `MX_ARG_INT`, `MX_ARG_DTYPE`.
   */
  int64_t integer;
  /*
   `MX_ARG_REAL`.
   */
  double real;
  /*
   `MX_ARG_TEXT`.
   */
  const char *text;
  /*
   `MX_ARG_TEXTS`.
   */
  const char *const *texts;
  /*
   `MX_ARG_INTS`.
   */
  const int64_t *ints;
  /*
   `MX_ARG_COMPLEX`, `MX_ARG_REALS`.
   */
  const double *reals;
  /*
   `MX_ARG_ARRAY`.
   */
  mx_handle array;
  /*
   `MX_ARG_ARRAYS`.
   */
  const mx_handle *arrays;
} mx_value;

/*
 One argument. Its layout never changes; later versions add kinds.
 */
typedef struct {
  /*
   The parameter's name. Null gives it by position, in front of those by name.
   */
  const char *name;
  /*
   One of `MX_ARG_…`.
   */
  int32_t kind;
  /*
   0.
   */
  int32_t reserved;
  /*
   The number of entries, of kinds that have several.
   */
  size_t len;
  /*
   The argument.
   */
  mx_value value;
} mx_arg;

/*
 Where the outputs of a call go. Set `size` to `sizeof(mx_outputs)`: later versions append fields.
 */
typedef struct {
  /*
   `sizeof(mx_outputs)` of the caller.
   */
  size_t size;
  /*
   Room for handles.
   */
  mx_handle *arrays;
  /*
   For how many.
   */
  size_t capacity;
  /*
   Set to the number of outputs.
   */
  size_t len;
} mx_outputs;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Writes the facts of the last failure of this thread.

 # Safety
 `out` is null or points to a structure whose `size` is set.
 */
int32_t mx_last_error(mx_error *out);

/*
 A new array of `shape` (`ndim` sizes) in C order. The elements are copied from `data`; they are zeros if it is null. `device` is text such as
 "cpu" or "gpu(1)"; null is the CPU.

 # Safety
 `shape`, `data` and `device` are null or valid for the call, `data` for as many bytes as the array has.
 */
int32_t mx_array_create(const void *data,
                        const int64_t *shape,
                        size_t ndim,
                        int32_t dtype,
                        const char *device,
                        mx_handle *out);

/*
 The sizes of the axes. `ndim` is set to their number; `shape`, which has room for `capacity` sizes, is written if they fit, and may be null if
 `capacity` is 0.

 # Safety
 `shape` is null or has room for `capacity` sizes; `ndim` is null or a variable.
 */
int32_t mx_array_shape(mx_handle array,
                       int64_t *shape,
                       size_t capacity,
                       size_t *ndim);

/*
 The data type, one of `MX_BOOL` … `MX_COMPLEX128`.

 # Safety
 `dtype` is null or a variable.
 */
int32_t mx_array_dtype(mx_handle array, int32_t *dtype);

/*
 The number of bytes that the elements take in C order.

 # Safety
 `len_bytes` is null or a variable.
 */
int32_t mx_array_len_bytes(mx_handle array, size_t *len_bytes);

/*
 The device as text such as "cpu(0)", ended by a zero byte. `len_bytes` is set to the length that is needed, the zero byte included; the text is
 written if `capacity` is as much.

 # Safety
 `text` is null or has room for `capacity` bytes; `len_bytes` is null or a variable.
 */
int32_t mx_array_device(mx_handle array,
                        char *text,
                        size_t capacity,
                        size_t *len_bytes);

/*
 Copies the elements in C order to `data`, which has `len_bytes` bytes: exactly as many as the elements take. Waits for pending work.

 # Safety
 `data` is null or has room for `len_bytes` bytes.
 */
int32_t mx_array_read(mx_handle array,
                      void *data,
                      size_t len_bytes);

/*
 The address of the elements of a dense array on the CPU, without a copy. Pending work is waited for; from then on calls that touch the array
 return when they are done. The address is valid until the array and all views of it are freed.

 # Safety
 `data` is null or a variable.
 */
int32_t mx_array_data(mx_handle array,
                      void **data);

/*
 A copy of the elements in C order, outside any recorded graph.

 # Safety
 `out` is null or a variable.
 */
int32_t mx_array_copy(mx_handle array, mx_handle *out);

/*
 Returns when the elements are there. A failure of the work that should have computed them is returned here.
 */
int32_t mx_array_wait(mx_handle array);

/*
 Returns when all work that was issued so far, on whatever thread, is done.
 */
int32_t mx_wait_all(void);

/*
 Frees an array. Its handle names nothing from then on; views of it and graphs that need it keep the elements.
 */
int32_t mx_free(mx_handle handle);

/*
 The number of handles that name something: what a program that frees all leaves at 0.

 # Safety
 `count` is null or a variable.
 */
int32_t mx_handle_count(size_t *count);

/*
 An array over the memory of a `DLManagedTensorVersioned` (DLPack 1.x), which belongs to the array from then on: its deleter runs when nobody
 needs the memory any more. After an error it still belongs to the caller.

 # Safety
 `managed` is null or points to a valid structure that the caller owns.
 */
int32_t mx_array_from_dlpack(void *managed,
                             mx_handle *out);

/*
 The array as a `DLManagedTensorVersioned` (DLPack 1.x) over the same memory, which the caller owns and whose deleter it calls. Pending work is
 waited for; from then on calls that touch the array return when they are done.

 # Safety
 `managed` is null or a variable.
 */
int32_t mx_array_to_dlpack(mx_handle array,
                           void **managed);

/*
 An array over memory of the caller, in C order on the CPU, without a copy. `deleter`, which may be null, is called with `context` when nobody
 needs the memory any more; after an error it is not.

 # Safety
 `data` is null or has as many elements as `shape` (`ndim` sizes) says, which stay until `deleter` is called.
 */
int32_t mx_array_from_memory(void *data,
                             const int64_t *shape,
                             size_t ndim,
                             int32_t dtype,
                             mx_deleter deleter,
                             void *context,
                             mx_handle *out);

/*
 Calls the operator `op` with `nargs` arguments. Outputs are new arrays; those given as `out` are written and their own handles are returned.

 # Safety
 `op` is null or text, `args` is null or has `nargs` arguments that hold what their kinds say, `out` is null or a structure whose `size` is set.
 */
int32_t mx_invoke(const char *op,
                  const mx_arg *args,
                  size_t nargs,
                  mx_outputs *out);

/*
 Opens a scope in which calls of this thread are recorded (`is_recording` 1) or not (0), in training mode (`is_training` 1) or not (0). It is ended
 by `mx_record_end` on the same thread, inner scopes first.

 # Safety
 `scope` is null or a variable.
 */
int32_t mx_record_begin(int32_t is_recording,
                        int32_t is_training,
                        mx_handle *scope);

/*
 Ends the scope: recording and training mode are what they were before it.
 */
int32_t mx_record_end(mx_handle scope);

/*
 Makes the array a variable with a gradient of zeros. `grad_req` is "write" (what null means), "add" or "null".

 # Safety
 `grad_req` is null or text.
 */
int32_t mx_mark(mx_handle array, const char *grad_req);

/*
 The gradient of a variable: an array that later backward passes write to.

 # Safety
 `out` is null or a variable.
 */
int32_t mx_gradient(mx_handle array, mx_handle *out);

/*
 Sends gradients from the heads to every variable that they were computed from. `head_grads` has one array for each head, 0 for ones; null is ones
 for all. `retain_graph` 1 keeps the graph for another pass.

 # Safety
 `heads` and `head_grads` are null or have `len` handles.
 */
int32_t mx_backward(const mx_handle *heads,
                    const mx_handle *head_grads,
                    size_t len,
                    int32_t retain_graph);

/*
 The gradients of the heads with respect to `num_variables` variables, as new arrays in `out`, which has room for so many. `creates_graph` 1
 records the pass, so that the gradients have gradients.

 # Safety
 The lists are null or have as many handles as their lengths say.
 */
int32_t mx_grad(const mx_handle *heads,
                const mx_handle *head_grads,
                size_t num_heads,
                const mx_handle *variables,
                size_t num_variables,
                int32_t creates_graph,
                mx_handle *out);

/*
 Reads what `HybridBlock.export` wrote: the graph (`<name>-symbol.json`) and its arrays (`<name>-0000.params`). `mx_free` frees it. Nothing in the files
 is executed but operators.

 # Safety
 `symbol_file` and `param_file` are null or text, `graph` is null or has room for a handle.
 */
int32_t mx_graph_load(const char *symbol_file,
                      const char *param_file,
                      mx_handle *graph);

/*
 Sets `num_arguments` to the number of arrays that a graph takes.

 # Safety
 `num_arguments` is null or has room for a number.
 */
int32_t mx_graph_num_arguments(mx_handle graph, size_t *num_arguments);

/*
 Runs a graph on `len` arrays. Its results are new arrays. Threads may run it at the same time; they share its arrays.

 # Safety
 `arrays` is null or has `len` handles, `out` is null or a structure whose `size` is set.
 */
int32_t mx_graph_run(mx_handle graph, const mx_handle *arrays, size_t len, mx_outputs *out);

/*
 Writes `len` arrays under their names to a safetensors file, which replaces an older one in a single step.

 # Safety
 `path` is null or text; `names` and `arrays` are null or have `len` entries, the names text.
 */
int32_t mx_save(const char *path, const char *const *names, const mx_handle *arrays, size_t len);

/*
 Reads a safetensors file. `len` is set to the number of its arrays; if `capacity` is as much, `arrays` gets a new handle for each. Their names go
 to `names`, parted by line ends and ended by a zero byte, if `names_capacity` is enough; `names_len_bytes` is set to what is needed.

 # Safety
 `path` is null or text, the others are null or have room for as much as they say.
 */
int32_t mx_load(const char *path,
                mx_handle *arrays,
                size_t capacity,
                size_t *len,
                char *names,
                size_t names_capacity,
                size_t *names_len_bytes);

/*
 The version of the ABI that the library has: at least `MX_ABI_VERSION` of the header that a program was compiled with, or the library is too old.
 */
uint32_t mx_abi_version(void);

/*
 The version of the library, such as "2.0.0". The text is constant.
 */
const char *mx_version(void);

/*
 The names of all operators, parted by line ends. `len_bytes` is set to the length that is needed, the zero byte at the end included; the text is
 written if `capacity` is as much.

 # Safety
 `names` is null or has room for `capacity` bytes; `len_bytes` is null or a variable.
 */
int32_t mx_op_names(char *names,
                    size_t capacity,
                    size_t *len_bytes);

/*
 What an operator takes, as JSON: `{"name", "version", "doc", "params": [{"name", "kind", "default"}]}`; a required parameter has no default. The
 text is constant.

 # Safety
 `op` is null or text; `description` is null or a variable.
 */
int32_t mx_op_describe(const char *op,
                       const char **description);

/*
 Starts the random numbers of the process anew.
 */
int32_t mx_random_seed(uint64_t seed);

/*
 Loads a module: a shared library that adds operators, kernels or devices. One that is loaded already is not loaded again.

 # Safety
 `path` is null or text.
 */
int32_t mx_load_module(const char *path);

/*
 Gives a setting a value, both as text: `mx_config_set("engine_mode", "sync")`.

 # Safety
 `key` and `value` are null or text.
 */
int32_t mx_config_set(const char *key, const char *value);

/*
 The value of a setting as text, ended by a zero byte. `len_bytes` is set to the length that is needed, the zero byte included; the text is written
 if `capacity` is as much.

 # Safety
 `key` is null or text; `value` is null or has room for `capacity` bytes; `len_bytes` is null or a variable.
 */
int32_t mx_config_get(const char *key,
                      char *value,
                      size_t capacity,
                      size_t *len_bytes);

/*
 All settings as JSON: `[{"name", "doc", "kind", "value", "origin"}]`. `len_bytes` is set to the length that is needed, the zero byte at the end
 included; the text is written if `capacity` is as much.

 # Safety
 `list` is null or has room for `capacity` bytes; `len_bytes` is null or a variable.
 */
int32_t mx_config_list(char *list,
                       size_t capacity,
                       size_t *len_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MXNET_H */
