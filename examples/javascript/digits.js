// Multiply two arrays without a copy, and predict digits with a network that Python has exported.
//
//     npm install koffi
//     MXNET_LIBRARY=target/release/libmxnet.so node examples/javascript/digits.js \
//         net-symbol.json net-0000.params images.safetensors scores.safetensors
//
// HybridBlock.export writes the first two files. The third has one array, the images.

"use strict";

const koffi = require("koffi");

const lib = koffi.load(process.env.MXNET_LIBRARY);

const Value = koffi.union("mx_value", { integer: "int64_t", array: "uint64_t" });
const Arg = koffi.struct("mx_arg", { name: "const char *", kind: "int32_t", reserved: "int32_t", len: "size_t", value: Value });
const Outputs = koffi.struct("mx_outputs", { size: "size_t", arrays: "uint64_t *", capacity: "size_t", len: "size_t" });
const Fault = koffi.struct("mx_error", {
  size: "size_t", status: "int32_t", reserved: "int32_t", op: "const char *", message: "const char *", hint: "const char *",
});

const lastError = lib.func("int32_t mx_last_error(_Inout_ mx_error *out)");
const invoke = lib.func("int32_t mx_invoke(const char *op, mx_arg *args, size_t nargs, _Inout_ mx_outputs *out)");
const fromMemory = lib.func(
  "int32_t mx_array_from_memory(void *data, int64_t *shape, size_t ndim, int32_t dtype, void *deleter, void *context, _Out_ uint64_t *out)");
const release = lib.func("int32_t mx_free(uint64_t handle)");
const loadFile = lib.func(
  "int32_t mx_load(const char *path, void *arrays, size_t capacity, _Out_ size_t *len, void *names, size_t names_capacity, _Out_ size_t *needed)");
const saveFile = lib.func("int32_t mx_save(const char *path, const char **names, uint64_t *arrays, size_t len)");
const loadGraph = lib.func("int32_t mx_graph_load(const char *symbol_file, const char *param_file, _Out_ uint64_t *graph)");
const runGraph = lib.func("int32_t mx_graph_run(uint64_t graph, uint64_t *arrays, size_t len, _Inout_ mx_outputs *out)");
const lenBytes = lib.func("int32_t mx_array_len_bytes(uint64_t array, _Out_ size_t *len_bytes)");
const read = lib.func("int32_t mx_array_read(uint64_t array, void *data, size_t len_bytes)");
const handleCount = lib.func("int32_t mx_handle_count(_Out_ size_t *count)");

const KIND = { integer: 2, array: 9 };
const FLOAT32 = 11;

function check(status) {
  if (status !== 0) {
    const fault = { size: koffi.sizeof(Fault), status: 0, reserved: 0, op: null, message: null, hint: null };
    lastError(fault);
    throw new Error(fault.message);
  }
}

/** A call with one output. `run` gets a structure for it. */
function outputOf(run) {
  const handle = new BigUint64Array(1);
  check(run({ size: koffi.sizeof(Outputs), arrays: handle, capacity: 1, len: 0 }));
  return handle[0];
}

/** Calls an operator with one output. Arguments are arrays, or [name, kind, value]. */
function call(op, ...given) {
  const args = given.map((x) => {
    const [name, kind, value] = Array.isArray(x) ? x : [null, "array", x];
    return { name, kind: KIND[kind], reserved: 0, len: 0, value: { [kind]: value } };
  });
  return outputOf((out) => invoke(op, args, args.length, out));
}

/** c = a * b, all three in memory of this program. */
function multiply() {
  const data = [Float32Array.of(1, 2, 3, 4, 5, 6), Float32Array.of(10, 10, 10, 0.5, 0.5, 0.5), new Float32Array(6)];
  const x = data.map((values) => {
    const handle = [null];
    check(fromMemory(values, BigInt64Array.of(2n, 3n), 2, FLOAT32, null, null, handle));
    return handle[0];
  });
  call("multiply", x[0], x[1], ["out", "array", x[2]]);
  console.log("product:", ...data[2]);
  x.forEach((handle) => check(release(handle)));
}

/** The only array of a file. */
function load(path) {
  const array = new BigUint64Array(1), name = Buffer.alloc(256), len = [null], needed = [null];
  check(loadFile(path, array, 1, len, name, name.length, needed));
  if (array[0] === 0n) throw new Error(`${path} has ${len[0]} arrays, 1 is needed`);
  return array[0];
}

/** Runs an exported network with one argument and one result. */
function predict(symbolFile, paramFile, images) {
  const graph = [null];
  check(loadGraph(symbolFile, paramFile, graph));
  const scores = outputOf((out) => runGraph(graph[0], BigUint64Array.of(images), 1, out));
  check(release(graph[0]));
  return scores;
}

/** The digit of each row of scores, (n, 10). */
function digits(scores) {
  const found = call("argmax", scores, ["axis", "integer", 1]);
  const len = [null];
  check(lenBytes(found, len));
  const result = new BigInt64Array(Number(len[0]) / 8);
  check(read(found, result, len[0]));
  check(release(found));
  return Array.from(result, Number);
}

multiply();
if (process.argv.length === 6) {
  const [symbolFile, paramFile, imageFile, scoreFile] = process.argv.slice(2);
  const images = load(imageFile);
  const scores = predict(symbolFile, paramFile, images);
  console.log("digits:", ...digits(scores));
  check(saveFile(scoreFile, ["scores"], BigUint64Array.of(scores), 1));
  check(release(scores));
  check(release(images));
}
const left = [null];
check(handleCount(left));
console.log("handles left:", Number(left[0]));
