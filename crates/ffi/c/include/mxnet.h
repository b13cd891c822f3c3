/* The C ABI of mxnet. Written by cbindgen from crates/ffi/c/src: see docs/design/c-abi.md. Do not edit. */

#ifndef MXNET_H
#define MXNET_H

#include <stddef.h>
#include <stdint.h>

/*
 Success.
 */
#define MX_OK 0

/*
 Shapes that do not fit the operator or each other.
 */
#define MX_ERROR_SHAPE 1

/*
 A data type, or a type of argument, that the operator does not accept.
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
 An invalid argument: a null pointer, a freed handle, an unknown word.
 */
#define MX_ERROR_VALUE 5

/*
 A matrix that does not have the requested factorisation.
 */
#define MX_ERROR_LINALG 6

/*
 A number out of range of the data type.
 */
#define MX_ERROR_OVERFLOW 7

/*
 A step of zero, or a division into zero parts.
 */
#define MX_ERROR_ZERO_DIVISION 8

/*
 Operands on different devices, or a device that does not exist.
 */
#define MX_ERROR_DEVICE 9

/*
 Out of memory.
 */
#define MX_ERROR_MEMORY 10

/*
 Not supported for these arguments; the message names the alternative.
 */
#define MX_ERROR_UNSUPPORTED 11

/*
 An error while reading or writing a file.
 */
#define MX_ERROR_IO 12

/*
 The requested gradient does not exist.
 */
#define MX_ERROR_AUTOGRAD 13

/*
 A floating-point error, in a thread that is set to raise an error for it.
 */
#define MX_ERROR_FLOATING_POINT 14

/*
 The values of an abstract array (without values) were requested.
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
 Booleans of one byte.
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
 A boolean, in `integer`.
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
 `len` arrays, in `arrays`; 0 stands for an absent array.
 */
#define MX_ARG_ARRAYS 10

/*
 A data type, in `integer`: one of `MX_BOOL` … `MX_COMPLEX128`.
 */
#define MX_ARG_DTYPE 11

/*
 The version of the ABI that this header describes. It is incremented by additions; functions and fields are never removed.
 */
#define MX_ABI_VERSION 2

/*
 Description of a failure. Set `size` to `sizeof(mx_error)`: later versions append fields.
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
   Reserved; 0.
   */
  int32_t reserved;
  /*
   The operator or function that failed; empty if unknown. Valid until the next failure of this thread.
   */
  const char *op;
  /*
   The whole message: what was found, what is required, and the operands. Valid until the next failure of this thread.
   */
  const char *message;
  /*
   A suggestion that works; empty if there is none. Valid until the next failure of this thread.
   */
  const char *hint;
} mx_error;

/*
 An object of the library: an array, a scope or a graph. 0 is no object.
 */
typedef uint64_t mx_handle;

/*
 Called with its context, on any thread, when the memory is not needed any more.
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
   The name of the parameter. Null passes the argument by position; positional arguments come before named ones.
   */
  const char *name;
  /*
   One of `MX_ARG_…`.
   */
  int32_t kind;
  /*
   Reserved; 0.
   */
  int32_t reserved;
  /*
   The number of entries, for kinds with several.
   */
  size_t len;
  /*
   The argument.
   */
  mx_value value;
} mx_arg;

/*
 Receives the outputs of a call. Set `size` to `sizeof(mx_outputs)`: later versions append fields.
 */
typedef struct {
  /*
   `sizeof(mx_outputs)` of the caller.
   */
  size_t size;
  /*
   Receives the handles.
   */
  mx_handle *arrays;
  /*
   Number of handles that `arrays` is valid for.
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
 Writes the description of the last failure of this thread.

 # Safety
 `out` is null or points to a structure whose `size` is set.
 */
int32_t mx_last_error(mx_error *out);

/*
 A new array of `shape` (`ndim` sizes) in C order. The elements are copied from `data`, or zero if that is null. `device` is text such as
 "cpu" or "gpu(1)"; null means the CPU.

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
 The sizes of the axes. Sets `ndim` to the number of axes. Writes the sizes to `shape` if that has a `capacity` of at least `ndim` sizes;
 `shape` may be null if `capacity` is 0.

 # Safety
 `shape` is null or valid for `capacity` sizes; `ndim` is null or points to a variable.
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
 The device as text such as "cpu(0)". Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is
 at least that.

 # Safety
 `text` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_array_device(mx_handle array,
                        char *text,
                        size_t capacity,
                        size_t *len_bytes);

/*
 Copies the elements in C order to `data`, which has `len_bytes` bytes. `len_bytes` must equal the size of the elements. Waits for pending work.

 # Safety
 `data` is null or valid for `len_bytes` bytes.
 */
int32_t mx_array_read(mx_handle array,
                      void *data,
                      size_t len_bytes);

/*
 The address of the elements of a contiguous array on the CPU, without a copy. Waits for pending work. From then on, calls that read or write the
 array are synchronous. The address is valid until the array and all views of it are freed.

 # Safety
 `data` is null or a variable.
 */
int32_t mx_array_data(mx_handle array,
                      void **data);

/*
 A copy of the elements in C order, which is not part of a recorded graph.

 # Safety
 `out` is null or a variable.
 */
int32_t mx_array_copy(mx_handle array, mx_handle *out);

/*
 Waits until the elements are computed. Returns the error of the operation that failed to compute them, if any.
 */
int32_t mx_array_wait(mx_handle array);

/*
 Waits for all operations issued so far, by any thread.
 */
int32_t mx_wait_all(void);

/*
 Frees an object. Its handle is invalid from then on; views of an array and graphs that need it keep its elements alive.
 */
int32_t mx_free(mx_handle handle);

/*
 The number of valid handles. It is 0 if a program has freed all its objects.

 # Safety
 `count` is null or a variable.
 */
int32_t mx_handle_count(size_t *count);

/*
 An array over the memory of a `DLManagedTensorVersioned` (DLPack 1.x). The array takes over the structure, and calls its deleter when the memory
 is not needed any more. After an error the structure still belongs to the caller.

 # Safety
 `managed` is null or points to a valid structure that the caller owns.
 */
int32_t mx_array_from_dlpack(void *managed,
                             mx_handle *out);

/*
 The array as a `DLManagedTensorVersioned` (DLPack 1.x) over the same memory. The caller owns the structure and must call its deleter. Waits for
 pending work. From then on, calls that read or write the array are synchronous.

 # Safety
 `managed` is null or points to a variable.
 */
int32_t mx_array_to_dlpack(mx_handle array,
                           void **managed);

/*
 An array over memory of the caller, in C order on the CPU, without a copy. `deleter` (which may be null) is called with `context` when the memory
 is not needed any more. After an error it is not called.

 # Safety
 `data` is null or valid for the elements that `shape` (`ndim` sizes) describes, until `deleter` is called.
 */
int32_t mx_array_from_memory(void *data,
                             const int64_t *shape,
                             size_t ndim,
                             int32_t dtype,
                             mx_deleter deleter,
                             void *context,
                             mx_handle *out);

/*
 Calls the operator `op` with `nargs` arguments. Outputs are new arrays; arrays given as `out` are written, and their handles are returned.

 # Safety
 `op` is null or a string; `args` is null or points to `nargs` valid arguments; `out` is null or points to a structure whose `size` is set.
 */
int32_t mx_invoke(const char *op,
                  const mx_arg *args,
                  size_t nargs,
                  mx_outputs *out);

/*
 Opens a scope in which calls of this thread are recorded (`is_recording` 1) or not (0), in training mode (`is_training` 1) or not (0).
 `mx_record_end` must end it on the same thread, inner scopes first.

 # Safety
 `scope` is null or a variable.
 */
int32_t mx_record_begin(int32_t is_recording,
                        int32_t is_training,
                        mx_handle *scope);

/*
 Ends a scope: restores recording and training mode.
 */
int32_t mx_record_end(mx_handle scope);

/*
 Gets whether calls of this thread are recorded, and whether it is in training mode (1 or 0).

 # Safety
 `is_recording` and `is_training` are null or variables.
 */
int32_t mx_record_state(int32_t *is_recording, int32_t *is_training);

/*
 Makes the array a variable with a gradient of zeros. `grad_req` is "write", "add" or "null"; a null pointer means "write".

 # Safety
 `grad_req` is null or a zero-terminated string.
 */
int32_t mx_mark(mx_handle array,
                const char *grad_req);

/*
 The gradient of a variable: an array to which later backward passes write.

 # Safety
 `out` is null or a variable.
 */
int32_t mx_gradient(mx_handle array, mx_handle *out);

/*
 Computes the gradients of the heads with respect to all variables that they were computed from, and stores them there. `head_grads` has one
 cotangent for each head (0 means ones), or is null for ones everywhere. `retain_graph` 1 keeps the graph for another backward pass.

 # Safety
 `heads` and `head_grads` are null or point to `len` handles.
 */
int32_t mx_backward(const mx_handle *heads,
                    const mx_handle *head_grads,
                    size_t len,
                    int32_t retain_graph);

/*
 The gradients of the heads with respect to `num_variables` variables, as new arrays in `out`, which must be valid for that many handles.
 `creates_graph` 1 records the backward pass, so that the gradients can be differentiated.

 # Safety
 The lists are null or point to as many handles as their lengths say.
 */
int32_t mx_grad(const mx_handle *heads,
                const mx_handle *head_grads,
                size_t num_heads,
                const mx_handle *variables,
                size_t num_variables,
                int32_t creates_graph,
                mx_handle *out);

/*
 Loads what `HybridBlock.export` wrote: the graph (`<name>-symbol.json`) and its arrays (`<name>-0000.params`). Free it with `mx_free`. The files
 can only call operators, not execute other code.

 # Safety
 `symbol_file` and `param_file` are null or strings; `graph` is null or points to a handle.
 */
int32_t mx_graph_load(const char *symbol_file,
                      const char *param_file,
                      mx_handle *graph);

/*
 Sets `num_arguments` to the number of arrays that a graph takes.

 # Safety
 `num_arguments` is null or points to a number.
 */
int32_t mx_graph_num_arguments(mx_handle graph, size_t *num_arguments);

/*
 Describes the arrays that a graph takes, as JSON: `[{"shape", "dtype", "dynamic_axes"}]`. Axes listed in `dynamic_axes` may have any length; their
 sizes in `shape` are an example. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at
 least that.

 # Safety
 `description` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_graph_describe(mx_handle graph,
                          char *description,
                          size_t capacity,
                          size_t *len_bytes);

/*
 Runs a graph on `len` arrays. The results are new arrays. Several threads may run the graph at the same time.

 # Safety
 `arrays` is null or points to `len` handles; `out` is null or points to a structure whose `size` is set.
 */
int32_t mx_graph_run(mx_handle graph, const mx_handle *arrays, size_t len, mx_outputs *out);

/*
 Writes `len` named arrays to a safetensors file, and replaces an existing file atomically.

 # Safety
 `path` is null or a string; `names` and `arrays` are null or have `len` entries; the names are strings.
 */
int32_t mx_save(const char *path, const char *const *names, const mx_handle *arrays, size_t len);

/*
 Reads a safetensors file. Sets `len` to the number of its arrays. Writes a new handle for each to `arrays` if `capacity` is at least that. Writes
 their names, separated by line feeds and terminated by a zero byte, to `names` if `names_capacity` is enough; sets `names_len_bytes` to the
 required length.

 # Safety
 `path` is null or a string; the other pointers are null or valid for the given lengths.
 */
int32_t mx_load(const char *path,
                mx_handle *arrays,
                size_t capacity,
                size_t *len,
                char *names,
                size_t names_capacity,
                size_t *names_len_bytes);

/*
 The version of the library's ABI. If it is less than the `MX_ABI_VERSION` that a program was compiled with, the library is too old.
 */
uint32_t mx_abi_version(void);

/*
 The version of the library, such as "2.0.0". The text is constant.
 */
const char *mx_version(void);

/*
 The names of all operators, separated by line feeds. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text
 if `capacity` is at least that.

 # Safety
 `names` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_op_names(char *names,
                    size_t capacity,
                    size_t *len_bytes);

/*
 The signature of an operator, as JSON: `{"name", "version", "doc", "params": [{"name", "kind", "default"}]}`. A required parameter has no default.
 The text is constant.

 # Safety
 `op` is null or a string; `description` is null or points to a variable.
 */
int32_t mx_op_describe(const char *op,
                       const char **description);

/*
 Seeds the random number generator of the process.
 */
int32_t mx_random_seed(uint64_t seed);

/*
 Loads a module: a shared library that adds operators, kernels, devices or graph passes. Loading it again has no effect.

 # Safety
 `path` is null or a string.
 */
int32_t mx_load_module(const char *path);

/*
 Sets a setting; key and value are text: `mx_config_set("engine_mode", "sync")`.

 # Safety
 `key` and `value` are null or strings.
 */
int32_t mx_config_set(const char *key, const char *value);

/*
 The value of a setting as text. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at
 least that.

 # Safety
 `key` is null or a string; `value` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_config_get(const char *key,
                      char *value,
                      size_t capacity,
                      size_t *len_bytes);

/*
 All settings as JSON: `[{"name", "doc", "kind", "value", "origin"}]`. Sets `len_bytes` to the required length including the terminating zero byte.
 Writes the text if `capacity` is at least that.

 # Safety
 `list` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_config_list(char *list,
                       size_t capacity,
                       size_t *len_bytes);

/*
 Sets what the profiler records, and which file `mx_profiler_dump` writes. `what` is a list such as "operators,graphs,memory,calls", or "all".

 # Safety
 `filename` and `what` are null or strings.
 */
int32_t mx_profiler_configure(const char *filename,
                              const char *what);

/*
 Starts to record. After a finished dump, a new trace begins.
 */
int32_t mx_profiler_start(void);

/*
 Stops recording, after the operations that were called before.
 */
int32_t mx_profiler_stop(void);

/*
 Pauses the profiler (1), or continues (0).
 */
int32_t mx_profiler_pause(int32_t is_paused);

/*
 Writes the trace, JSON in Chrome's format for trace events, to the file of the settings. `is_finished` (1) stops the profiler.
 */
int32_t mx_profiler_dump(int32_t is_finished);

/*
 The statistics as text. `format` is "table" or "json", `sort_by` "total", "avg", "min", "max" or "count"; null pointers mean the first of each.
 Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at least that; new statistics begin
 then if `is_reset` is 1. Events between two calls may make the text longer.

 # Safety
 `format` and `sort_by` are null or strings; `summary` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_profiler_summary(const char *format,
                            const char *sort_by,
                            int32_t is_ascending,
                            int32_t is_reset,
                            char *summary,
                            size_t capacity,
                            size_t *len_bytes);

/*
 Names the operators of this thread until `mx_profiler_scope_end`. Scopes nest; their names together have at most 4096 bytes.

 # Safety
 `name` is null or a string.
 */
int32_t mx_profiler_scope_begin(const char *name);

/*
 Ends the innermost scope of this thread.
 */
int32_t mx_profiler_scope_end(void);

/*
 Begins a range of this thread, which the trace shows as a task of `domain`. Ranges nest.

 # Safety
 `domain` and `name` are null or strings.
 */
int32_t mx_profiler_range_begin(const char *domain, const char *name);

/*
 Ends the innermost range of this thread.
 */
int32_t mx_profiler_range_end(void);

/*
 Records the value of a counter.

 # Safety
 `domain` and `name` are null or strings.
 */
int32_t mx_profiler_counter(const char *domain, const char *name, int64_t value);

/*
 Records an instant. `reach` is "global", "process" or "thread".

 # Safety
 `domain`, `name` and `reach` are null or strings.
 */
int32_t mx_profiler_marker(const char *domain, const char *name, const char *reach);

/*
 The features of this build and of the processor as JSON: `[{"name", "is_enabled"}]`. Sets `len_bytes` to the required length including the
 terminating zero byte. Writes the text if `capacity` is at least that.

 # Safety
 `features` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
 */
int32_t mx_features(char *features,
                    size_t capacity,
                    size_t *len_bytes);

/*
 The number of devices of a kind: "cpu", "gpu", or one that a module added.

 # Safety
 `kind` is null or a string; `count` is null or points to a variable.
 */
int32_t mx_device_count(const char *kind, size_t *count);

/*
 Free memory and all memory of a device such as "gpu(0)", in bytes.

 # Safety
 `device` is null or a string; `free_bytes` and `total_bytes` are null or variables.
 */
int32_t mx_device_memory(const char *device, size_t *free_bytes, size_t *total_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MXNET_H */
