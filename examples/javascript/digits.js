// Multiply two arrays without a copy, and predict digits with a network that Python has trained.
//
//     npm install koffi && MXNET_LIBRARY=target/release/libmxnet.so node examples/javascript/digits.js

"use strict";

const koffi = require("koffi");

const lib = koffi.load(process.env.MXNET_LIBRARY);

const Value = koffi.union("mx_value", { integer: "int64_t", real: "double", text: "const char *", pointer: "void *" });
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
const handleCount = lib.func("int32_t mx_handle_count(_Out_ size_t *count)");

const KIND = { bool: 1, real: 3, text: 5, ints: 7, array: 9 };
const FLOAT32 = 11;

function check(status) {
  if (status !== 0) {
    const fault = { size: koffi.sizeof(Fault), status: 0, reserved: 0, op: null, message: null, hint: null };
    lastError(fault);
    throw new Error(fault.message);
  }
}

/** Calls an operator with one output. Arguments are arrays, or [name, kind, value]. */
function call(op, ...given) {
  const args = given.map((x) => {
    const [name, kind, value] = Array.isArray(x) ? x : [null, "array", x];
    switch (kind) {
      case "array": return { name, kind: KIND.array, reserved: 0, len: 0, value: { integer: value } };
      case "bool": return { name, kind: KIND.bool, reserved: 0, len: 0, value: { integer: value ? 1 : 0 } };
      case "real": return { name, kind: KIND.real, reserved: 0, len: 0, value: { real: value } };
      case "text": return { name, kind: KIND.text, reserved: 0, len: 0, value: { text: value } };
      default: return { name, kind: KIND.ints, reserved: 0, len: value.length, value: { pointer: koffi.as(BigInt64Array.from(value, BigInt), "int64_t *") } };
    }
  });
  const room = new BigUint64Array(1);
  const out = { size: koffi.sizeof(Outputs), arrays: room, capacity: 1, len: 0 };
  check(invoke(op, args, args.length, out));
  return room[0];
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

function load(path) {
  const arrays = new BigUint64Array(32), names = Buffer.alloc(2048), len = [null], needed = [null];
  check(loadFile(path, arrays, 32, len, names, 2048, needed));
  const found = {};
  names.toString("utf8", 0, Number(needed[0]) - 1).split("\n").forEach((name, i) => { found[name] = arrays[i]; });
  return found;
}

function predict(net) {
  let x = net.images;
  const then = (op, ...args) => {
    const y = call(op, x, ...args);
    if (x !== net.images) check(release(x));
    x = y;
  };
  for (const at of ["conv1", "conv2"]) {
    then("convolution", net[`${at}.weight`], ["kernel", "ints", [3, 3]], ["pad", "ints", [1, 1]], ["no_bias", "bool", true]);
    then("batch_norm", net[`${at}.gamma`], net[`${at}.beta`], net[`${at}.running_mean`], net[`${at}.running_var`],
      ["eps", "real", 1e-5], ["fix_gamma", "bool", false]);
    then("activation", ["act_type", "text", "relu"]);
  }
  then("pooling", ["kernel", "ints", [2, 2]], ["pool_type", "text", "max"], ["stride", "ints", [2, 2]]);
  then("fully_connected", net["dense1.weight"], net["dense1.bias"], ["no_bias", "bool", false]);
  then("activation", ["act_type", "text", "relu"]);
  then("fully_connected", net["dense2.weight"], net["dense2.bias"], ["no_bias", "bool", false]);
  return x;
}

multiply();
if (process.argv.length === 4) {
  const net = load(process.argv[2]);
  const scores = predict(net);
  check(saveFile(process.argv[3], ["scores"], BigUint64Array.of(BigInt(scores)), 1));
  check(release(scores));
  Object.values(net).forEach((handle) => check(release(handle)));
}
const left = [null];
check(handleCount(left));
console.log("handles left:", Number(left[0]));
