"""Graph passes and partitioners of modules: what they may do, files with their parts, and those that lie."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from c_library import ROOT, library, run
from module_libraries import EXAMPLES, Build, built_by_rustc, module
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn
from rust_examples import example


def load(path: Path) -> Iterator[mx.library.Module]:
    """Loads a module; its passes do not run on graphs of other tests."""
    found = mx.library.load(path, verbose=False)
    yield found
    for name in found.passes:
        mx.graph.unregister_pass(name)


@pytest.fixture(scope="module")
def rewrites(build: Build) -> Iterator[mx.library.Module]:
    yield from load(build("rewrites", (EXAMPLES / "rewrites.c").read_text()))


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[mx.library.Module]:
    yield from load(built_by_rustc("loops", tmp_path_factory.mktemp("loops")))


loaded = contextmanager(load)


def data(*shape: int) -> np.ndarray:
    return np.array(onp.random.default_rng(sum(shape)).normal(size=shape).astype("float32"))


def bits(x: np.ndarray) -> bytes:
    return x.asnumpy().tobytes()


def test_a_pass_in_c_rewrites_graphs_that_choose_it(rewrites: mx.library.Module) -> None:
    assert rewrites.passes == ["double_by_adding", "cancel_negations"]
    assert set(rewrites.passes) <= set(mx.graph.passes())
    x = data(4, 3)

    def function(x: np.ndarray) -> np.ndarray:
        return np.exp(x * 2) + 2.0 * np.tanh(x)

    default, chosen = mx.jit(function), mx.jit(function, backend="double_by_adding")
    assert bits(chosen(x)) == bits(default(x)) == bits(function(x))
    assert "multiply" in str(default.graphs[0])
    assert "multiply" not in str(chosen.graphs[0])
    assert str(chosen.graphs[0]).count("add") == 3
    # Integers times 2.0 are floats: the engine refuses the sum, and the product stays.
    whole = mx.jit(lambda x: np.exp(x * 2.0), backend="double_by_adding")
    assert bits(whole(np.arange(4))) == bits(np.exp(np.arange(4) * 2.0))
    assert "multiply" in str(whole.graphs[0])


def test_a_pass_that_always_runs_and_can_be_switched_off(rewrites: mx.library.Module) -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.exp(np.negative(-np.tanh(x))) + np.negative(-x)

    x = data(5)
    compiled = mx.jit(function, passes_off=["simplify"])
    assert bits(compiled(x)) == bits(function(x))
    assert "negative" not in str(compiled.graphs[0])
    without = mx.jit(function, passes_off=["simplify", "cancel_negations"])
    assert bits(without(x)) == bits(function(x))
    assert str(without.graphs[0]).count("negative") == 4
    # A result must not be the argument itself, so here they stay.
    result = mx.jit(lambda x: np.negative(-x), passes_off=["simplify"])
    assert bits(result(x)) == bits(x)
    assert mx.graph.bisect(function, x) is None


class Net(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Dense(8, in_units=4), nn.Dense(8, in_units=8)

    def forward(self, x: np.ndarray) -> np.ndarray:
        hidden = self.first(x)
        small = np.sqrt(np.abs(hidden) + 1) - hidden / 2
        return np.square(self.second(small) - small) * 3 + hidden


def network() -> Net:
    mx.random.seed(5)
    net = Net()
    net.initialize(mx.init.Xavier())
    return net


def test_a_backend_in_rust_runs_parts_of_a_network(loops: mx.library.Module) -> None:
    assert loops.passes == ["loops"]
    net, x = network(), data(6, 4)
    expected = bits(net(x))
    before = npx.loops_programs().item()
    net.optimize_for(x, backend="loops")
    assert bits(net(x)) == expected
    text = str(net._compiled.graphs[0])
    assert text.count("loops_part") == 2
    assert " sqrt(" not in text and " square(" not in text and " fully_connected(" in text
    assert npx.loops_programs().item() == before + 2
    net.optimize_for(x, clear=True)
    assert "loops_part" not in str(net._compiled.graphs[0])
    net.hybridize(backend="loops")
    assert bits(net(x)) == expected
    assert "loops_part" in str(net._compiled.graphs[0])
    with pytest.raises(ValueError, match="there is no backend 'nowhere'"):
        net.hybridize(backend="nowhere")
    for dtype in ("float32", "float64"):
        compiled = mx.jit(lambda x: np.sqrt(np.square(x) + 1) / 3 - x, backend="loops")
        y = data(3, 1, 5).astype(dtype)
        assert bits(compiled(y)) == bits(np.sqrt(np.square(y) + 1) / 3 - y)


def test_training_with_a_backend_gives_the_same_parameters(loops: mx.library.Module) -> None:
    def trained(backend: str | None) -> list[bytes]:
        net, x = network(), data(6, 4)
        if backend is not None:
            net.optimize_for(x, backend=backend)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
        for _ in range(3):
            with autograd.record():
                loss = net(x).sum()
            loss.backward()
            trainer.step(6)
        return [bits(p.data()) for p in net.collect_params().values()]

    assert trained("loops") == trained(None)


def test_what_it_cannot_take_stays(loops: mx.library.Module) -> None:
    def function(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        z = x.copy()
        z[0] = 1
        return (np.square(x.T) + y.T) * 2 + np.square(z + y).sum() + np.sqrt(np.square(x[:1]) + 1)

    x, y = data(3, 3), data(3, 3)
    compiled = mx.jit(function, backend="loops")
    assert bits(compiled(x, y)) == bits(function(x, y))
    whole = mx.jit(lambda x: np.square(x) + x * 2, backend="loops")
    assert bits(whole(np.arange(4))) == bits(np.square(np.arange(4)) + np.arange(4) * 2)
    assert "loops_part" not in str(whole.graphs[0])


def test_programs_are_freed_when_their_graphs_are_gone(loops: mx.library.Module) -> None:
    def use(n: int) -> None:
        compiled = mx.jit(lambda x: np.square(x) + float(n), backend="loops")
        assert bits(compiled(data(3))) == bits(np.square(data(3)) + float(n))

    use(1000)
    before = npx.loops_programs().item()
    for n in range(20):
        use(n)
    mx.waitall()
    assert npx.loops_programs().item() <= before + 2


READS = """
import sys
import mxnet as mx
library, symbol, params, values = sys.argv[1:]
readers = [mx.graph.load, lambda symbol, params: mx.gluon.SymbolBlock.imports(symbol, ["data"], params)]
for read in readers:
    try:
        read(symbol, params)
    except Exception as error:
        print(type(error).__name__, error)
if library:
    mx.library.load(library, verbose=False)
    for read in readers:
        print(read(symbol, params)(mx.npx.load(values)["x"]).asnumpy().tobytes().hex())
"""


def in_new_process(library: str, symbol: str, params: str, values: Path) -> list[str]:
    """What reading a file gives: the errors of two readers without the module, then the results with it."""
    package = str(Path(mx.__file__).parent.parent)
    command = [sys.executable, "-c", READS, library, symbol, params, str(values)]
    return run(command, env={"PYTHONPATH": package}).splitlines()


def test_files_with_parts_are_read_by_processes_that_have_the_module(loops: mx.library.Module, tmp_path: Path) -> None:
    net, x = network(), data(6, 4)
    expected = bits(net(x)).hex()
    net.optimize_for(x, backend="loops")
    symbol, params = net.export(tmp_path / "net")
    assert "loops_part" in Path(symbol).read_text()
    npx.save(str(tmp_path / "x"), {"x": x})
    *errors, first, second = in_new_process(loops.path, symbol, params, tmp_path / "x")
    assert first == second == expected
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("FileFormatError")
        assert "`loops_part`: it belongs to the module `loops`, which is not loaded" in error


def exported_with_cube(cube: mx.library.Module, folder: Path) -> tuple[str, str, str]:
    net, x = nn.HybridLambda(lambda x: npx.cube(x, scale=2.0) + 1), data(3)
    net.hybridize()
    expected = bits(net(x)).hex()
    npx.save(str(folder / "x"), {"x": x})
    npx.save(str(folder / "in.safetensors"), {"0": x})
    return (*net.export(folder / "cube"), expected)


def test_files_with_operators_of_a_module(cube: mx.library.Module, tmp_path: Path) -> None:
    symbol, params, expected = exported_with_cube(cube, tmp_path)
    *errors, first, second = in_new_process(cube.path, symbol, params, tmp_path / "x")
    assert first == second == expected
    assert len(errors) == 2
    for error in errors:
        assert "there is no operator `cube`: it belongs to the module `cube`, which is not loaded" in error


LOADS = """
import ctypes, sys
library, symbol, params, module = sys.argv[1:]
class Fault(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("op", ctypes.c_char_p),
                ("message", ctypes.c_char_p), ("hint", ctypes.c_char_p)]
c = ctypes.CDLL(library)
graph, fault = ctypes.c_uint64(), Fault(size=ctypes.sizeof(Fault))
files = symbol.encode(), params.encode()
assert c.mx_graph_load(*files, ctypes.byref(graph)) != 0
c.mx_last_error(ctypes.byref(fault))
print(fault.message.decode())
assert c.mx_load_module(module.encode()) == 0
assert c.mx_graph_load(*files, ctypes.byref(graph)) == 0
"""


@pytest.mark.slow
def test_missing_modules_are_named_in_c_and_rust(cube: mx.library.Module, tmp_path: Path) -> None:
    symbol, params, _ = exported_with_cube(cube, tmp_path)
    printed = run([sys.executable, "-c", LOADS, str(library()), symbol, params, cube.path])
    assert "it belongs to the module `cube`, which is not loaded" in printed
    files = [symbol, params, str(tmp_path / "in.safetensors"), str(tmp_path / "out.safetensors")]
    done = subprocess.run([*example("predict"), *files], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "it belongs to the module `cube`, which is not loaded" in done.stderr


def test_files_with_operators_in_python_say_so(tmp_path: Path) -> None:
    double = mx.operator.define(lambda x: x * 2, name="graph_modules_double")
    net, x = nn.HybridLambda(lambda x: double(x) + 1), data(3)
    net.hybridize()
    net(x)
    symbol, params = net.export(tmp_path / "net")
    npx.save(str(tmp_path / "x"), {"x": x})
    assert bits(mx.graph.load(symbol, params)(x)) == bits(x * 2 + 1)
    error, _ = in_new_process("", symbol, params, tmp_path / "x")
    assert error.startswith("FileFormatError")
    assert "there is no operator `graph_modules_double`: it was written in Python; define it" in error


def test_parts_of_python_partitioners_are_not_taken_for_others(tmp_path: Path) -> None:
    net = nn.HybridLambda(lambda x: np.exp(x) + 1)
    net.hybridize()
    net(data(3))
    symbol, params = net.export(tmp_path / "net")
    # A file as another process with a partitioner would have written it: the part's key and its ticket.
    graph = json.loads(Path(symbol).read_text())
    graph["nodes"][0] |= {"op": "graph_partition", "attrs": {"parameters": "of another process"}}
    ticket = {"buffer": len(graph["buffers"]), "shape": [], "strides": [], "offset": 0, "dtype": "uint64"}
    graph["nodes"][0]["outputs"].append(ticket)
    graph["buffers"].append(8)
    Path(symbol).write_text(json.dumps(graph))
    with pytest.raises(ValueError, match="compiled in another process: export the network without it"):
        mx.graph.load(symbol, params)


def test_a_module_of_the_first_version_still_loads(build: Build) -> None:
    # The structures of version 1 end before what version 2 appended.
    body = """
    if (host->size < offsetof(mx_host, add_pass)) return MX_MODULE_FAILED;
    return MX_MODULE_OK;"""
    found = mx.library.load(build("first_version", module(body, abi="1")), verbose=False)
    assert found.operators == found.passes == []


PASS = """
#include <string.h>
static int32_t run(const mx_pass_call *call)
{
    const mx_graph *g = call->graph;
    void *c = g->context;
    mx_node first = g->node_at(c, 0), second = g->node_at(c, 1);
    mx_operand x = {.kind = MX_OPERAND_VALUE, .dtype = -1}, y = x;
    x.value = g->argument(c, 0);
    y.value = g->output(c, second, 0);
    (void)first; (void)y;
    LIE
}
"""
ADDS_PASS = """
    const mx_pass pass = {.size = sizeof pass, .name = "NAME", .run = run};
    host->add_pass(host->context, &pass); return MX_MODULE_OK;"""

# What a pass does with the graph of `exp(x) * 3`, and what is said of it.
PASS_LIES = {
    "cycle": ("g->set_input(c, first, 0, &y); return MX_MODULE_OK;", "`exp`: reads buffer 2 before it is defined"),
    "dangling": ("return g->remove(c, first);", "the graph reads buffer 1, which `exp` makes"),
    "shape": (
        'const mx_call sum = {.size = sizeof sum, .op = "sum", .inputs = &x, .num_inputs = 1};'
        "return g->replace(c, first, &sum);",
        r"`sum` makes float32 \(\), the node it replaces float32 \(3,\)",
    ),
    "operator": (
        'const mx_call no = {.size = sizeof no, .op = "no_such", .inputs = &x, .num_inputs = 1};'
        "return g->insert(c, -1, &no) < 0 ? MX_MODULE_VALUE : MX_MODULE_OK;",
        "there is no operator `no_such`",
    ),
    "attribute": (
        'static const char *const names[] = {"axis"}; const mx_attribute a = {.kind = 77};'
        'const mx_call s = {.size = sizeof s, .op = "sum", .inputs = &x, .num_inputs = 1, .names = names,'
        " .attributes = &a, .num_attributes = 1};"
        "return g->insert(c, -1, &s) < 0 ? MX_MODULE_VALUE : MX_MODULE_OK;",
        "no attribute has the kind 77",
    ),
    "short": (
        'const mx_call s = {.size = 8, .op = "exp"}; return g->replace(c, first, &s);',
        "the call's structure has 8 bytes",
    ),
    "null": ("return g->replace(c, first, NULL);", "the call is null"),
    "node": ("return g->remove(c, 4711);", "there is no node 4711"),
    "value": ("x.value = 99; return g->set_input(c, first, 0, &x);", "there is no value 99"),
    "operand": ("return g->set_input(c, first, 5, &x);", "node 0 has no operand 5"),
    "place": ("return g->input(c, first, 0, NULL);", "the pointer for the result is null"),
    "status": ("return 12345;", "its module returned status 12345"),
    "message": (
        'snprintf(call->message, call->message_capacity, "no licence"); return MX_MODULE_FAILED;',
        "no licence",
    ),
}


@pytest.mark.parametrize("name", PASS_LIES)
def test_passes_that_lie_are_named_and_change_nothing(name: str, build: Build) -> None:
    lie, message = PASS_LIES[name]
    adds = ADDS_PASS.replace("NAME", f"lies_about_{name}")
    source = module(adds, PASS.replace("LIE", lie)).replace('"test"', f'"liar_{name}"')
    with loaded(build(f"liar_{name}", source)):

        def function(x: np.ndarray) -> np.ndarray:
            return np.exp(x) * 3

        x = data(3)
        compiled = mx.jit(function, backend=f"lies_about_{name}")
        with pytest.raises((ValueError, RuntimeError), match=message) as caught:
            compiled(x)
        assert f"`lies_about_{name}` of the module `liar_{name}`" in str(caught.value)
        net = nn.HybridLambda(function)
        with pytest.raises((ValueError, RuntimeError), match=message):
            net.optimize_for(x, backend=f"lies_about_{name}")
        net.optimize_for(x, clear=True)
        assert bits(net(x)) == bits(mx.jit(function)(x)) == bits(function(x))


def test_a_graph_is_not_valid_after_the_pass(build: Build) -> None:
    more = PASS.replace("static int32_t run", "static const mx_graph *kept; static void *c_kept;\nstatic int32_t run")
    lie = """
    static mx_graph copy;
    static int calls;
    if (calls++ > 0 && copy.num_nodes(copy.context) != 0 && copy.context != c) return MX_MODULE_FAILED;
    copy = *g; kept = &copy; c_kept = c; (void)kept; (void)c_kept;
    return MX_MODULE_OK;"""
    source = module(ADDS_PASS.replace("NAME", "keeps_graph"), more.replace("LIE", lie))
    with loaded(build("keeps_graph", source)):
        for n in (3, 4, 5):
            compiled = mx.jit(lambda x: np.exp(x) * 3, backend="keeps_graph")
            assert bits(compiled(data(n))) == bits(np.exp(data(n)) * 3)


PARTITIONER = """
static int32_t take(const mx_take_call *call) { (void)call; TAKE }
static int32_t compile(const mx_compile_call *call) { (void)call; COMPILE }
static int32_t run(const mx_kernel_call *call) { (void)call; RUN }
"""
ADDS_PARTITIONER = """
    const mx_partitioner p = {.size = sizeof p, .name = "NAME", .take = take, .compile = compile, .run = run};
    host->add_partitioner(host->context, &p); return MX_MODULE_OK;"""
OK = "return MX_MODULE_OK;"
MESSAGE = 'snprintf(call->message, call->message_capacity, "too hard"); return MX_MODULE_FAILED;'
CHANGES = "mx_node node = call->graph->node_at(call->graph->context, 0); "
PARTITIONER_LIES = {
    "take": (MESSAGE, OK, OK, "too hard"),
    "take_status": ("return -3;", OK, OK, "returned status -3"),
    "compile": (OK, MESSAGE, OK, "too hard"),
    "changes": (OK, CHANGES + "return call->graph->remove(call->graph->context, node);", OK, "can only be read"),
    "run": (OK, OK, MESSAGE, "too hard"),
    "declines_run": (OK, OK, "return MX_MODULE_DECLINED;", "it declines to run a part"),
}


@pytest.mark.parametrize("name", PARTITIONER_LIES)
def test_partitioners_that_lie_are_named(name: str, build: Build) -> None:
    take, compile_, run, message = PARTITIONER_LIES[name]
    more = PARTITIONER.replace("TAKE", take).replace("COMPILE", compile_).replace("RUN", run)
    adds = ADDS_PARTITIONER.replace("NAME", f"wrong_{name}")
    source = module(adds, more).replace('"test"', f'"wrong_module_{name}"')
    with loaded(build(f"wrong_{name}", source)):
        compiled = mx.jit(lambda x: np.exp(x) * 3, backend=f"wrong_{name}")
        x = data(3)
        with pytest.raises((RuntimeError, ValueError), match=message) as caught:
            compiled(x).wait_to_read()
        assert f"partitioner `wrong_{name}` of the module `wrong_module_{name}`" in str(caught.value)
        assert bits(mx.jit(lambda x: np.exp(x) * 3)(x)) == bits(np.exp(x) * 3)


def test_a_partitioner_that_declines_parts_leaves_them(build: Build) -> None:
    more = PARTITIONER.replace("TAKE", OK).replace("COMPILE", "return MX_MODULE_DECLINED;").replace("RUN", OK)
    source = module(ADDS_PARTITIONER.replace("NAME", "declines_all"), more)
    with loaded(build("declines_all", source)):
        compiled = mx.jit(lambda x: np.exp(x) * 3, backend="declines_all")
        assert bits(compiled(data(3))) == bits(np.exp(data(3)) * 3)


BAD = """
    const mx_pass pass = {.size = sizeof pass, .name = "bad_pass", .run = run, FIELDS};
    host->add_pass(host->context, &pass); return MX_MODULE_OK;"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (".size = 4", "the pass's structure has 4 bytes"),
        (".name = NULL", "`name of the pass` is null"),
        ('.name = ""', "pass ``: the name is empty or another pass has it"),
        ('.name = "fuse"', "pass `fuse`: the name is empty or another pass has it"),
        (".run = NULL", "pass `bad_pass`: it has no `run`"),
        (".always = 2", "pass `bad_pass`: `always` must be 0 or 1"),
    ],
)
def test_descriptions_of_passes_are_checked(fields: str, message: str, build: Build) -> None:
    source = module(BAD.replace("FIELDS", fields), PASS.replace("LIE", OK))
    library = build(f"bad_pass_{abs(hash(fields))}", source)
    with pytest.raises(ValueError, match=message):
        mx.library.load(library, verbose=False)
    assert "bad_pass" not in mx.graph.passes()


def test_names_of_module_passes_are_kept(rewrites: mx.library.Module) -> None:
    with pytest.raises(ValueError, match="`double_by_adding` is the name of a pass of the module `rewrites`"):
        mx.graph.register_pass(lambda graph: None, name="double_by_adding")


TWICE = {
    "another_result": lambda x: (lambda a: (a, np.negative(-a)))(x * 3),
    "part_of_another_result": lambda x: (lambda a: (a, np.negative(-a[:2])))(x * 3),
    "read_only": lambda x: np.negative(-np.broadcast_to(x * 3, (2, 3))),
    "other_strides": lambda x: np.negative(-(x.reshape(1, 3) * np.ones((4, 3)))[:, ::2]),
    "changed_later": lambda x: (lambda a: (a, np.negative(-a), a.__setitem__(0, 7.0)))(x * 3)[:2],
}


@pytest.mark.parametrize("name", TWICE)
def test_results_keep_memory_and_strides_of_their_own(name: str, rewrites: mx.library.Module) -> None:
    function, x = TWICE[name], data(3)

    def called(**options: object) -> list[object]:
        found = mx.jit(function, passes_off=["simplify", *options.get("off", [])])(x)
        results = list(found) if isinstance(found, tuple) else [found]
        before = [y.asnumpy().tolist() for y in results]
        layouts = [(y.strides, y.asnumpy().flags.writeable) for y in results]
        # Changing one result changes no other.
        if layouts[0][1]:
            results[0][:] = 0
        return [before, layouts, [y.asnumpy().tolist() for y in results]]

    assert called() == called(off=["cancel_negations"])


def test_a_result_is_not_the_memory_of_a_captured_array(rewrites: mx.library.Module) -> None:
    w, x = np.zeros(3), data(3)

    def function(x: np.ndarray) -> np.ndarray:
        w[:] = w + x
        return np.negative(-w)

    y = mx.jit(function, passes_off=["simplify"])(x)
    assert bits(y) == bits(w) == bits(x)
    w[:] = 5
    assert bits(y) == bits(x)


def test_operands_with_other_strides_give_the_same_results(rewrites: mx.library.Module) -> None:
    def function(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        first = np.exp(np.negative(-x.T)) + np.negative(-np.broadcast_to(x[0], (3, 3))).sum(axis=0)
        return first.T * np.tanh(np.negative(-y[:, ::2])), np.dot(np.negative(-x.T), x)

    x, y = data(3, 3), data(3, 6)
    compiled = mx.jit(function, passes_off=["simplify"])
    for found, expected in zip(compiled(x, y), function(x, y), strict=True):
        assert bits(found) == bits(expected)
        assert found.strides == expected.strides


def test_doubling_keeps_infinite_complex_numbers(rewrites: mx.library.Module) -> None:
    x = np.array(onp.array([complex(onp.inf, 0), complex(1, onp.inf), 1 + 2j], "complex64"))
    with onp.errstate(all="ignore"):
        expected = np.exp(x * 2)
        found = mx.jit(lambda x: np.exp(x * 2), backend="double_by_adding")(x)
    onp.testing.assert_array_equal(found.asnumpy(), expected.asnumpy())
    product = mx.jit(lambda x: (x * 2) + 0, backend="double_by_adding")(x)
    onp.testing.assert_array_equal(product.asnumpy(), (x * 2 + 0).asnumpy())


def tampered(graph: dict[str, Any], number: int, shape: list[int]) -> dict[str, Any]:
    """The graph with another shape of an argument, and a buffer that is as small."""
    buffer = graph["inputs"][number]["buffer"]
    graph["buffers"][buffer] = 4 * math.prod(shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    operands = [operand["view"] for node in graph["nodes"] for operand in node["inputs"]]
    for view in [graph["inputs"][number]["view"], *operands]:
        if view["buffer"] == buffer:
            view["shape"], view["strides"] = shape, strides
    return graph


def test_parts_in_files_cannot_make_a_backend_read_beyond_arrays(loops: mx.library.Module, tmp_path: Path) -> None:
    class Sum(gluon.HybridBlock):
        def forward(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return np.square(x) + y

    net, x, y = Sum(), data(4, 3), data(4, 3)
    net.optimize_for(x, y, backend="loops")
    symbol, params = net.export(tmp_path / "net")
    written = Path(symbol).read_text()
    assert bits(mx.graph.load(symbol, params)(x, y)) == bits(np.square(x) + y)

    # The part adds a row, which the backend does not take.
    graph = tampered(json.loads(written), 1, [1, 3])
    attrs = graph["nodes"][0]["attrs"]
    attrs["graph"] = json.dumps(tampered(json.loads(attrs["graph"]), 1, [1, 3]))
    Path(symbol).write_text(json.dumps(graph))
    with pytest.raises(ValueError, match=r"partitioner `loops` .*does not take node 1 \(`add`\) of a part"):
        mx.graph.load(symbol, params)(x, y[:1].copy()).wait_to_read()

    # The part is kept, but gets a view that repeats a row.
    graph = tampered(json.loads(written), 1, [3])
    view = graph["nodes"][0]["inputs"][1]["view"]
    view["shape"], view["strides"] = [4, 3], [0, 1]
    Path(symbol).write_text(json.dumps(graph))
    with pytest.raises(ValueError, match="argument 1 of a part is not in C order"):
        mx.graph.load(symbol, params)(x, y[0].copy()).wait_to_read()


CALL = (
    'static const char *const names[] = {"KEY"}; const mx_attribute a = {GIVEN};'
    "const mx_operand operands[] = {x, {.kind = MX_OPERAND_NONE, .dtype = -1}};"
    'const mx_call s = {.size = sizeof s, .op = "NAME", .inputs = operands, .num_inputs = COUNT, .names = names,'
    " .attributes = &a, .num_attributes = 1};"
)


def call(op: str, key: str, given: str, count: int = 1) -> str:
    """C text that describes a call `s` of an operator on `x` with one attribute."""
    return CALL.replace("NAME", op).replace("COUNT", str(count)).replace("KEY", key).replace("GIVEN", given)


def rewriting(build: Build, name: str, body: str) -> Path:
    """A module whose backend `name` changes the graph of `exp(x) * 3`."""
    more = "#include <math.h>\n" + PASS.replace("LIE", body)
    return build(name, module(ADDS_PASS.replace("NAME", name), more).replace('"test"', f'"{name}"'))


def test_attributes_may_be_infinite_or_not_a_number(build: Build) -> None:
    body = (
        call("softmax", "temperature", ".kind = MX_PARAMETER_REAL, .real = INFINITY", 2)
        + "return g->replace(c, first, &s);"
    )
    with loaded(rewriting(build, "cools", body)):
        compiled = mx.jit(lambda x: np.exp(x) * 3, backend="cools")
        assert compiled(data(4)).tolist() == [0.75] * 4
        assert '"temperature":{"float":"inf"}' in str(compiled.graphs[0])
    # NaN reaches the operator, which refuses it.
    library = rewriting(build, "cools_to_nan", body.replace("INFINITY", "NAN"))
    with loaded(library), pytest.raises(ValueError, match="softmax: `temperature` is NaN"):
        mx.jit(lambda x: np.exp(x) * 3, backend="cools_to_nan")(data(4))


def test_inserted_calls_run_in_the_mode_of_their_neighbour(build: Build) -> None:
    modes = []

    @mx.operator.define(name="graph_modules_mode")
    def mode(x: np.ndarray) -> np.ndarray:
        modes.append(autograd.is_training())
        return x + 1

    @mode.gradient
    def _(dys: list[np.ndarray], inputs: list[np.ndarray], outputs: list[np.ndarray]) -> list[np.ndarray]:
        return dys

    body = call("graph_modules_mode", "parameters", '.kind = MX_PARAMETER_TEXT, .text = "{}"')
    body += """
    mx_node mode = g->insert(c, first, &s);
    x.value = g->output(c, mode, 0);
    return mode < 0 ? MX_MODULE_VALUE : g->set_input(c, first, 0, &x);"""
    with loaded(rewriting(build, "asks_mode", body)):
        x = data(3)
        compiled = mx.jit(lambda x: np.exp(x) * 3, backend="asks_mode")
        assert bits(compiled(x)) == bits(np.exp(x + 1) * 3)
        with autograd.train_mode():
            compiled(x)
        assert modes == [False, True]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("random_fill", "`random_fill` draws random numbers, a pass cannot add it"),
        ("fused_sgd", "`fused_sgd` changes its operand `weights`, a pass cannot add it"),
    ],
)
def test_calls_that_cannot_be_inserted_say_why(op: str, message: str, build: Build) -> None:
    body = call(op, "p", ".kind = MX_PARAMETER_REAL, .real = 0.5")
    library = rewriting(build, f"adds_{op}", body + "return g->insert(c, first, &s) < 0 ? MX_MODULE_VALUE : 0;")
    with loaded(library), pytest.raises(ValueError, match=message):
        mx.jit(lambda x: np.exp(x) * 3, backend=f"adds_{op}")(data(3))


def test_a_replaced_call_must_have_the_strides_too(build: Build) -> None:
    body = call("copy", "order", '.kind = MX_PARAMETER_TEXT, .text = "C"') + "return g->replace(c, first, &s);"
    message = r"`copy` makes float32 \(2, 3\), the node it replaces float32 \(2, 3\) with strides \[1, 2\] and offset 0"
    with loaded(rewriting(build, "reorders", body)), pytest.raises(ValueError, match=message):
        mx.jit(lambda x: np.exp(x) * 3, backend="reorders")(data(3, 2).T)


def test_a_value_that_a_node_changes_is_not_replaced(build: Build) -> None:
    body = "return g->replace_value(c, g->output(c, first, 0), x.value);"
    with loaded(rewriting(build, "replaces_changed", body)):

        def function(x: np.ndarray, grad: np.ndarray) -> np.ndarray:
            weight = np.exp(x)
            npx.sgd_update([weight], [grad], lrs=[0.5])
            return weight

        with pytest.raises(ValueError, match="`fused_sgd` changes an operand and reads the value"):
            mx.jit(function, backend="replaces_changed")(data(3), data(3))
