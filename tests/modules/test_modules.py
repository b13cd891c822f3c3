"""Modules in C and Rust: operators with gradients, kernels, a device; and libraries that crash, lie or panic."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from module_libraries import Build, module
from mxnet import autograd, np, npx


def test_an_operator_in_c_has_values_parameters_and_gradients(cube: mx.library.Module) -> None:
    assert cube.operators == ["cube", "cube_gradient", "cube_matmuls"]
    x = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, 2.0]], dtype="float64")
    values = x.asnumpy()
    assert (npx.cube(x).asnumpy() == values**3).all()
    assert (npx.cube(x.T, scale=2.0).asnumpy() == 2 * values.T**3).all()
    x.attach_grad()
    with autograd.record():
        y = npx.cube(x, scale=0.5)
    y.backward()
    assert (x.grad.asnumpy() == 1.5 * values**2).all()
    assert npx.cube(np.ones((0, 3))).shape == (0, 3)


def test_its_errors_are_those_of_an_operator(cube: mx.library.Module) -> None:
    with pytest.raises(TypeError, match="cube: operand 0 must be float32 or float64"):
        npx.cube(np.array([1, 2]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'power'"):
        npx.cube(np.ones(2), power=3)


def test_a_kernel_serves_what_it_takes_and_leaves_the_rest(cube: mx.library.Module) -> None:
    a = onp.random.default_rng(0).normal(size=(7, 5))
    before = npx.cube_matmuls().item()
    exact = np.matmul(np.array(a, dtype="float64"), np.array(a.T, dtype="float64"))
    assert npx.cube_matmuls().item() == before + 1
    # The sum of 5 products, in another order than NumPy's: 5 roundings of half an ulp each way.
    onp.testing.assert_allclose(
        exact.asnumpy(), a @ a.T, rtol=0, atol=10 * onp.finfo(float).eps * (abs(a) @ abs(a.T)).max()
    )
    single = np.matmul(np.array(a, dtype="float32"), np.array(a.T, dtype="float32"))
    assert npx.cube_matmuls().item() == before + 1
    assert single.dtype == "float32"
    served = [(x.op, x.device, x.priority, x.module) for x in mx.runtime.served()]
    assert ("matmul", "cpu", 1, "cube") in served


def test_a_device_in_rust_has_memory_copies_and_kernels(accelerator: mx.library.Module) -> None:
    assert accelerator.devices == ["accelerator"]
    device = mx.Device("accelerator", 1)
    x = np.array([1.0, 2.0, 3.0])
    there = x.to_device(device)
    assert there.device == device
    y = np.exp(there + there)
    assert y.device == device
    # exp of the Rust standard library and NumPy's are within an ulp of the true value each.
    onp.testing.assert_array_max_ulp(y.asnumpy(), onp.exp(onp.float32([2, 4, 6])), 2)
    assert (y.to_device(mx.cpu()).asnumpy() == y.asnumpy()).all()
    # Its copies are those of one device: between two the elements go through main memory.
    other = y.to_device(mx.Device("accelerator"))
    assert other.device == mx.Device("accelerator")
    assert (other.asnumpy() == y.asnumpy()).all()
    assert "accelerator" in [backend.name for backend in mx.runtime.backends()]


def test_what_a_device_cannot_do_is_an_error(accelerator: mx.library.Module) -> None:
    device = mx.Device("accelerator")
    x = np.ones(3).to_device(device)
    with pytest.raises(RuntimeError, match=r"tanh.*accelerator\(0\)"):
        np.tanh(x).wait_to_read()
    with pytest.raises(RuntimeError, match="exp: panicked: the accelerator overheats"):
        np.exp(np.full(3, 5000.0).to_device(device)).wait_to_read()
    with pytest.raises(MemoryError, match=r"accelerator\(0\): cannot allocate 4000000 bytes"):
        np.ones(1_000_000).to_device(device).wait_to_read()
    assert (np.exp(x).asnumpy() > 2.7).all()


def test_a_module_is_loaded_once(cube: mx.library.Module) -> None:
    assert mx.library.load(cube.path, verbose=False) == cube
    assert [found.name for found in mx.library.loaded()].count("cube") == 1


def test_a_library_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    library = tmp_path / "libtext.so"
    library.write_text("This is not a shared library, although its name says so. " * 20)
    with pytest.raises(OSError, match=r"libtext\.so cannot be opened: .*invalid ELF header"):
        mx.library.load(library, verbose=False)


OPERATOR = """
static int32_t ok(const mx_kernel_call *call) { (void)call; return MX_MODULE_OK; }
static const char *const x[] = {"x"};
"""


def adds(fields: str, name: str = "test_op") -> str:
    return f"""
    const mx_operator op = {{
        .size = sizeof op, .name = "{name}", .inputs = x, .num_inputs = 1, .num_outputs = 1, .kernel = ok, {fields}}};
    host->add_operator(host->context, &op); return MX_MODULE_OK;"""


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("int nothing;", OSError, "is not a module: it has no function `mx_module_entry`"),
        (module(abi="99"), RuntimeError, r"built for version 99 of the ABI, supported are versions 1 to 3"),
        (module(abi="0"), RuntimeError, "built for version 0 of the ABI, supported are versions 1 to 3"),
        (module(fields=".size = 3"), OSError, "has 3 bytes"),
        (module(fields=".init = NULL"), OSError, "has no `init`"),
        (module(fields=".name = NULL"), ValueError, "`name of the module` is null"),
        (module('snprintf(message, capacity, "no key"); return MX_MODULE_FAILED;'), RuntimeError, "refuses: no key"),
        (module("return 12345;"), RuntimeError, "refuses: the module gives no reason"),
        (module("raise(SIGSEGV); return 0;"), OSError, r"crashes while it is loaded \(SIGSEGV\)"),
        (module(more="__attribute__((constructor)) static void boom(void) { abort(); }"), OSError, r"crashes.*SIGABRT"),
        (module("exit(3);"), OSError, "ends the process that loads it"),
        (module("host->add_operator(host->context, NULL); return 0;"), ValueError, "the operator is null"),
        (module(adds(".size = 5"), OPERATOR), ValueError, "the operator's structure has 5 bytes"),
        (module(adds("", name="add"), OPERATOR), ValueError, "operator `add`: the name is empty or exists already"),
        (module(adds(".kernel = NULL"), OPERATOR), ValueError, "it has no kernel"),
        (module(adds(".num_inputs = 1000"), OPERATOR), ValueError, "more than 64"),
        (module(adds(".inputs = NULL"), OPERATOR), ValueError, "are null"),
        (module(adds(".flags = 6"), OPERATOR), ValueError, "flags that this engine does not know"),
        (module(adds(".reserved = 1"), OPERATOR), ValueError, "`reserved` is not 0"),
        (module(adds(".gradient = \"nowhere\""), OPERATOR), ValueError, "`nowhere`, which is not an operator"),
    ],
)  # fmt: skip
def test_libraries_that_are_no_good_are_refused(
    source: str, error: type[Exception], message: str, build: Build
) -> None:
    from mxnet import _core

    library = build(f"bad{abs(hash(source))}", source)
    with pytest.raises(error, match=message):
        mx.library.load(library, verbose=False)
    with pytest.raises(ValueError, match="there is no operator `test_op`"):
        _core.added_operator("test_op")


LIKE_FIRST = "call->outputs[0] = call->inputs[0];"
HUGE = "call->outputs[0].ndim = 2; call->outputs[0].dtype = 11;"
LIES = {
    "axes": ("call->outputs[0].ndim = 99; return 0;", "gives output 0 99 axes"),
    "size": (f"{LIKE_FIRST} call->outputs[0].shape[0] = -3; return 0;", "gives output 0 the size -3"),
    "dtype": (f"{LIKE_FIRST} call->outputs[0].dtype = 77; return 0;", "the data type 77"),
    "nothing": ("(void)call; return 0;", "gives output 0 -1 axes"),
    "status": ("(void)call; return 4711;", "returned status 4711"),
    "huge": (f"{HUGE} call->outputs[0].shape[0] = call->outputs[0].shape[1] = 1LL << 62; return 0;", "elements|too"),
}


def test_shape_rules_that_lie_are_errors_of_the_call(build: Build) -> None:
    for name, (body, message) in LIES.items():
        more = OPERATOR + f"static int32_t infer(const mx_infer_call *call) {{ {body} }}"
        library = build(f"lie_{name}", module(adds(".infer = infer", name=f"lie_{name}"), more))
        mx.library.load(library, verbose=False)
        with pytest.raises((RuntimeError, ValueError), match=message):
            getattr(npx, f"lie_{name}")(np.ones(3))


def test_a_missing_library_and_a_folder(tmp_path: Path, cube: mx.library.Module) -> None:
    with pytest.raises(OSError, match="No such file"):
        mx.library.load(tmp_path / "none.so")
    (tmp_path / "libcube.so").symlink_to(cube.path)
    assert [found.name for found in mx.library.discover(tmp_path)] == ["cube"]
    # A library that is no module is left out, whatever its place among the others.
    (tmp_path / "a.so").write_text("no library")
    with pytest.warns(UserWarning, match=r"discover: .*a\.so is left out: .*a\.so"):
        assert [found.name for found in mx.library.discover(tmp_path)] == ["cube"]


def test_packages_and_a_variable_of_the_environment_name_modules(tmp_path: Path, cube: mx.library.Module) -> None:
    facts = tmp_path / "site" / "cubes-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: cubes\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[mxnet.modules]\ncube = cubes:path\nlost = cubes:lost\n")
    (tmp_path / "site" / "cubes.py").write_text(f"def path():\n    return {str(cube.path)!r}\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "libcube.so").symlink_to(cube.path)
    code = "import mxnet as mx; print([x.name for x in mx.library.discover()], mx.npx.cube(mx.np.array([2.0])))"
    for given, message in ({}, "'lost' is left out"), ({"MXNET_MODULES": str(tmp_path / "folder")}, ""):
        path = [*([] if given else [str(tmp_path / "site")]), *sys.path]
        environment = {**os.environ, **given, "PYTHONPATH": ":".join(path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        assert done.stdout.strip() == "['cube'] [8.]"
        assert message in done.stderr


def test_loading_prints_what_it_adds(cube: mx.library.Module) -> None:
    code = f"import mxnet as mx; mx.library.load({cube.path!r})"
    package = str(Path(mx.__file__).parent.parent)
    printed = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": package}, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "cube 1.0: cube, cube_gradient, cube_matmuls\n"


TICKETS = """
/* The number of calls before this one, for each element; `tickets_drawn` says how many there were. */
static atomic_long drawn;
static const char *const x[] = {"x"};
static int32_t ticket(const mx_kernel_call *call)
{
    float next = (float)atomic_fetch_add(&drawn, 1);
    long len = 1;
    for (int axis = 0; axis < call->outputs[0].ndim; axis++) len *= call->outputs[0].shape[axis];
    for (long i = 0; i < len; i++) ((float *)call->outputs[0].data)[i] = next;
    return MX_MODULE_OK;
}
static int32_t count(const mx_kernel_call *call)
{
    *(double *)call->outputs[0].data = (double)atomic_load(&drawn);
    return MX_MODULE_OK;
}
static int32_t number(const mx_infer_call *call)
{
    call->outputs[0].ndim = 0;
    call->outputs[0].dtype = 12;
    return MX_MODULE_OK;
}
"""
TICKET_OPERATORS = """
    const mx_operator ticket_op = {.size = sizeof ticket_op, .name = "ticket", .inputs = x, .num_inputs = 1,
                                   .num_outputs = 1, .kernel = ticket, .flags = MX_OPERATOR_IMPURE};
    const mx_operator count_op = {.size = sizeof count_op, .name = "tickets_drawn", .num_outputs = 1, .infer = number,
                                  .kernel = count, .flags = MX_OPERATOR_IMPURE};
    host->add_operator(host->context, &ticket_op);
    return host->add_operator(host->context, &count_op);
"""


@pytest.fixture(scope="module")
def tickets(build: Build) -> mx.library.Module:
    """A module with state: each call of `ticket` gives the next number."""
    source = "#include <stdatomic.h>\n" + module(TICKET_OPERATORS, TICKETS)
    return mx.library.load(build("tickets", source), verbose=False)


def drawn() -> int:
    return int(npx.tickets_drawn().item())


def test_a_graph_calls_an_impure_operator_as_often_as_the_program(tickets: mx.library.Module) -> None:
    x = np.zeros(3)

    @mx.jit
    def three(x: mx.np.ndarray) -> list[mx.np.ndarray]:
        npx.ticket(x)  # nobody reads it
        return [npx.ticket(x) * 1.0, npx.ticket(x) * 1.0, npx.tickets_drawn() * 1.0, np.exp(x) + np.exp(x)]

    three(x)
    for _ in range(3):
        before = drawn()
        first, second, *_ = three(x)
        assert drawn() == before + 3
        assert {float(first[0]), float(second[0])} < {float(before), before + 1.0, before + 2.0}
        assert float(first[0]) != float(second[0])
        assert (first == first[0]).all()


def test_an_impure_operator_is_not_computed_ahead_or_again(tickets: mx.library.Module) -> None:
    constant = mx.jit(lambda x: x + npx.ticket(np.ones(2)))
    values = {float(constant(np.zeros(2))[0]) for _ in range(4)}
    assert len(values) == 4

    net = mx.gluon.nn.HybridSequential()
    for _ in range(3):
        net.add(mx.gluon.nn.HybridLambda(lambda x: np.tanh(npx.ticket(x) * 0.0 + x)))
    net.hybridize()
    x = np.ones((64, 64))
    x.attach_grad()
    for step in range(3):
        before = drawn()
        with autograd.record():
            y = net(x)
        y.backward()
        x.grad.wait_to_read()
        assert drawn() == before + 3 or step == 0


def test_partitioners_are_not_offered_impure_operators(tickets: mx.library.Module) -> None:
    parts: list[list[str]] = []

    def compile_part(part: mx.graph.TracedGraph) -> object:
        parts.append([node.op for node in part.nodes])
        return part.compile()

    mx.graph.register_partitioner("all_nodes", lambda node: True, compile_part)
    try:
        net = mx.gluon.nn.HybridLambda(lambda x: np.exp(npx.ticket(np.exp(x))))
        net.optimize_for(np.zeros(3), backend="all_nodes")
        assert parts == [["exp"], ["exp"]]
        before = drawn()
        net(np.zeros(3)).wait_to_read()
        assert drawn() == before + 1
    finally:
        mx.graph.unregister_pass("all_nodes")


def test_operators_of_the_first_version_are_taken(build: Build) -> None:
    more = OPERATOR.replace("return MX_MODULE_OK", "*(float *)call->outputs[0].data = 5; return MX_MODULE_OK")
    fields = ".size = offsetof(mx_operator, flags), .flags = 0xffff"  # the flags lie behind the end
    mx.library.load(build("first_operator", module(adds(fields, name="old_op"), more, abi="1")), verbose=False)
    assert npx.old_op(np.zeros(1)).item() == 5
