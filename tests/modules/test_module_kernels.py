"""What kernels of modules get: attributes, streams of GPUs; operators of a module on its own device and on a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cuda_emulator
import mxnet as mx
from module_libraries import Build, module
from mxnet import np, npx

# Shows the attributes of the call in an error, for arrays of a size that no other test of this process has.
SHOWS_ATTRIBUTES = """
static int32_t shows(const mx_kernel_call *call)
{
    size_t at = 0;
    if (call->inputs[0].ndim != 5 || call->inputs[0].shape[0] != 4321)
        return MX_MODULE_DECLINED;
    for (size_t i = 0; i < call->num_attributes; i++) {
        const mx_attribute *x = &call->attributes[i];
        at += snprintf(call->message + at, call->message_capacity - at, "[%d %lld %g %s]", x->kind,
                       (long long)x->integer, x->real, x->text ? x->text : "-");
    }
    return MX_MODULE_VALUE;
}
"""
ADDS_KERNELS = """
    const char *const ops[] = {"sum", "softmax"};
    for (int i = 0; i < 2; i++) {
        const mx_kernel_entry kernel = {
            .size = sizeof kernel, .op = ops[i], .device = "cpu", .priority = 1, .kernel = shows};
        host->add_kernel(host->context, &kernel);
    }
    return MX_MODULE_OK;"""


@pytest.fixture(scope="module")
def shows_attributes(build: Build) -> mx.library.Module:
    source = module(ADDS_KERNELS, SHOWS_ATTRIBUTES).replace('"test"', '"shows_attributes"')
    return mx.library.load(build("shows_attributes", source), verbose=False)


@pytest.mark.usefixtures("shows_attributes")
@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("np.sum(x)", "[0 0 0 -][0 0 0 -][1 0 0 -]"),
        ("np.sum(x, 1, keepdims=True)", "[2 1 0 -][0 0 0 -][1 1 0 -]"),
        ("np.sum(x, (0, 2), 'float64')", '[6 0 0 [0,2]][6 0 0 {"dtype":"float64"}][1 0 0 -]'),
        ("npx.softmax(x, axis=2, temperature=0.5)", "[2 2 0 -][3 0 0.5 -][1 0 0 -][0 0 0 -]"),
    ],
)
def test_kernels_of_existing_operators_get_the_attributes(call: str, shown: str) -> None:
    with pytest.raises(ValueError) as raised:
        eval(call, {"np": np, "npx": npx, "x": np.ones((4321, 1, 2, 1, 1))}).wait_to_read()
    assert str(raised.value).splitlines()[0].split(": ", 1)[1] == shown
    assert np.sum(np.ones((2, 3)), 1).tolist() == [3, 3]


FILL = """
#include <string.h>
static int32_t fill(const mx_kernel_call *call)
{
    const mx_tensor *y = &call->outputs[0];
    for (int64_t i = 0; i < y->shape[0]; i++)
        ((float *)y->data)[i * y->strides[0]] = (float)call->attributes[0].real;
    return MX_MODULE_OK;
}
static const char *const operands[] = {"x"};
static const mx_parameter value = {"value", {.kind = MX_PARAMETER_REAL, .real = 1.0}};
"""
ADDS_FILL = """
    const mx_operator op = {
        .size = sizeof op, .name = "NAME", .inputs = operands, .num_inputs = 1, .num_outputs = 1,
        .parameters = &value, .num_parameters = 1, .kernel = fill};
    if (host->add_operator(host->context, &op) != MX_MODULE_OK)
        return MX_MODULE_FAILED;
    const mx_kernel_entry kernel = {
        .size = sizeof kernel, .op = "NAME", .device = "DEVICE", .kernel = there};
    host->add_kernel(host->context, &kernel);
"""
DEVICE = """
static void *take(void *state, uint32_t id, size_t n)
{
    (void)state; (void)id; return aligned_alloc(64, (n + 63) & ~(size_t)63);
}
static void give(void *state, uint32_t id, void *block, size_t n) { (void)state; (void)id; (void)n; free(block); }
static int32_t move(void *state, uint32_t id, void *to, const void *from, size_t n)
{
    (void)state; (void)id; memcpy(to, from, n); return 0;
}
static int32_t there(const mx_kernel_call *call) { return call->stream ? MX_MODULE_FAILED : fill(call); }
"""
ADDS_DEVICE = """
    const mx_device device = {
        .size = sizeof device, .name = "drawer", .count = 1, .allocate = take, .free = give, .upload = move,
        .download = move, .copy = move};
    host->add_device(host->context, &device);
"""


def test_an_operator_of_a_module_runs_on_its_device(build: Build) -> None:
    added = ADDS_FILL.replace("NAME", "drawer_fill").replace("DEVICE", "drawer")
    source = module(ADDS_DEVICE + added + "return MX_MODULE_OK;", FILL + DEVICE).replace('"test"', '"drawer"')
    loaded = mx.library.load(build("drawer", source), verbose=False)
    assert (loaded.operators, loaded.devices) == (["drawer_fill"], ["drawer"])
    there = np.ones(3).to_device(mx.Device("drawer"))
    assert npx.drawer_fill(there, value=2.5).asnumpy().tolist() == [2.5] * 3
    assert npx.drawer_fill(np.ones(2), value=1.5).tolist() == [1.5] * 2


# Fills by the driver, on the stream of the call. Sums are taken for arrays of three axes only.
GPU = """
#include <dlfcn.h>
static int32_t there(const mx_kernel_call *call)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*set)(uint64_t, unsigned, size_t, void *) = cuda ? (int (*)(uint64_t, unsigned, size_t, void *))dlsym(
        cuda, "cuMemsetD32Async") : 0;
    const mx_tensor *y = &call->outputs[0];
    float value = call->num_attributes ? (float)call->attributes[0].real : 7.0f;
    unsigned bits;
    size_t count = 1;
    for (int i = 0; i < y->ndim; i++)
        count *= (size_t)y->shape[i];
    memcpy(&bits, &value, 4);
    return set && call->stream && !set((uint64_t)y->data, bits, count, call->stream) ? MX_MODULE_OK : MX_MODULE_FAILED;
}
static int32_t adds(const mx_kernel_call *call)
{
    return call->inputs[0].ndim == 3 ? there(call) : MX_MODULE_DECLINED;
}
"""
ADDS_GPU = """
    const mx_kernel_entry sum = {
        .size = sizeof sum, .op = "add", .device = "gpu", .priority = PRIORITY, .kernel = adds};
    host->add_kernel(host->context, &sum);
    return MX_MODULE_OK;"""
PROGRAM = """
import sys
import mxnet as mx
from mxnet import np, npx
mx.library.load(sys.argv[1], verbose=False)
x = np.arange(5, dtype="float32").to_device(mx.gpu(0))
for _ in range(20):
    y = npx.gpu_fill(x, value=2.5)
    assert y.device == mx.gpu(0)
    assert (y + x).asnumpy().tolist() == [2.5, 3.5, 4.5, 5.5, 6.5]  # the engine's own kernel
cube = np.ones((2, 3, 2)).to_device(mx.gpu(0))
assert (cube + cube).asnumpy().tolist() == np.full((2, 3, 2), 7.0).tolist()
assert {(x.op, x.device, x.priority) for x in mx.runtime.served()} >= {("gpu_fill", "gpu", 0), ("add", "gpu", 1)}
try:
    mx.library.load(sys.argv[2], verbose=False)
except ValueError as error:
    assert "the priority of a kernel of `add` is 0: the engine's own has 0" in str(error)
else:
    raise AssertionError("a kernel that never runs was taken")
"""


@pytest.mark.skipif(not cuda_emulator.is_available(), reason="needs g++")
def test_kernels_for_gpus_get_the_stream_and_leave_calls_to_the_engine(build: Build, tmp_path: Path) -> None:
    added = ADDS_FILL.replace("NAME", "gpu_fill").replace("DEVICE", "gpu")
    libraries = []
    for priority, name in (1, "gpu_kernels"), (0, "useless"):
        body = (added.replace("gpu_fill", f"{name}_fill") if priority == 0 else added) + ADDS_GPU
        source = module(body.replace("PRIORITY", str(priority)), FILL + GPU).replace('"test"', f'"{name}"')
        libraries.append(str(build(name, source)))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *libraries],
        env={**cuda_emulator.environment(delay=200), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
