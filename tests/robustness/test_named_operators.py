"""Errors name the operator that the user called, not one of its parts, wherever the call runs and whenever it fails."""

import ast
import re

import pytest
from tests.docs.test_raises import CALLS

import mxnet as mx
from mxnet import np, npx
from mxnet.error import AbstractArrayError
from mxnet.gluon import HybridBlock, SymbolBlock

NAMES = {"mx": mx, "np": np, "npx": npx}
ALL = [call for calls in CALLS.values() for call in calls] + [
    "np.linalg.cholesky(-np.eye(2), upper=True)",
    "np.linalg.svd(np.full((2, 3), np.nan))",
    "np.linalg.eigh(np.full((3, 3), np.nan))",
    "np.linalg.eig(np.full((3, 3), np.nan))",
    "np.linalg.pinv(np.full((3, 2), np.nan))",
    "np.linalg.pinv(np.full((3, 3), np.nan), hermitian=True)",
    "np.linalg.norm(np.full((2, 2), np.nan), 2)",
    "np.linalg.norm(np.full((2, 2), np.nan), 'nuc')",
    "np.linalg.matrix_norm(np.full((2, 2), np.nan), ord=2)",
    "np.linalg.slogdet(np.ones((2, 3)))",
    "np.linalg.qr(np.ones(3), 'raw')",
    "npx.roi_pooling(np.ones((1, 1, 2, 2)), np.ones((1, 4)), (2, 2), 1.0)",
    "npx.roi_pooling(np.ones((1, 1, 2, 2)), np.array([[5, 0, 0, 1, 1]]), (2, 2), 1.0)",
]
# Found only when a kernel looks at the values.
OF_VALUES = [
    "np.linalg.cholesky(-np.eye(2))",
    "np.linalg.inv(np.zeros((2, 2)))",
    "np.linalg.solve(np.zeros((2, 2)), np.ones(2))",
    "np.linalg.matrix_power(np.zeros((2, 2)), -1)",
    "np.linalg.eigvalsh(np.full((3, 3), np.nan))",
    "np.linalg.norm(np.full((2, 2), np.nan), 2)",
    "np.linalg.matrix_rank(np.ones((3, 3)) * np.nan)",
    "np.linalg.pinv(np.full((3, 2), np.nan))",
    "np.take(np.ones(2), np.array([2]))",
    "np.take_along_axis(np.ones(2), np.array([2]), 0)",
    "npx.index_add(np.ones((2, 2)), np.array([[5]]), np.ones(1))",
]


@pytest.fixture(autouse=True)
def no_failure_is_left():
    """The next wait of another test would raise it."""
    yield
    while True:
        try:
            return mx.waitall()
        except mx.MXNetError:
            pass


def parts(call):
    """A function of the arrays among the arguments of a call, and those arrays."""
    # The method of a result: `f(x).asnumpy()`.
    node = ast.parse(call.removesuffix(".asnumpy()"), mode="eval").body

    def value(part):
        return eval(compile(ast.Expression(part), call, "eval"), NAMES)

    function, args = value(node.func), [value(arg) for arg in node.args]
    named = {keyword.arg: value(keyword.value) for keyword in node.keywords}
    where = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]

    def run(*arrays):
        given = list(args)
        for i, array in zip(where, arrays, strict=True):
            given[i] = array
        return function(*given, **named)

    return run, [args[i] for i in where]


def failure(run, *arrays):
    """The class of the error and the operator that it names."""

    def run_to_its_end():
        made = run(*arrays)
        for y in made if isinstance(made, list | tuple) else [made]:
            y.asnumpy()
        mx.waitall()

    with pytest.raises(Exception) as raised:
        run_to_its_end()
    name = re.match(r"(\w+): ", str(raised.value))
    return type(raised.value), name and name[1], str(raised.value)


@pytest.mark.parametrize("call", ALL)
def test_deferred_and_compiled_calls_name_the_operator_that_eager_calls_name(call):
    run, arrays = parts(call)
    with mx.config(engine_mode="sync"):
        kind, name, text = failure(run, *arrays)
    with mx.config(engine_mode="async"):
        assert failure(run, *arrays)[:2] == (kind, name)
    for mode in "sync", "async":
        with mx.config(engine_mode=mode):
            compiled = failure(mx.jit(run), *arrays)
        # A trace has no values to decide by.
        if compiled[0] is not AbstractArrayError:
            assert compiled[:2] == (kind, name), text


class Calls(HybridBlock):
    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, *arrays):
        return self.run(*arrays)


@pytest.mark.parametrize("call", OF_VALUES)
def test_graphs_from_files_name_the_operator_that_eager_calls_name(call, tmp_path):
    run, arrays = parts(call)
    kind, name, _ = failure(run, *arrays)
    net = Calls(run)
    net.hybridize()
    with mx.config(engine_mode="async"):
        net(*arrays)
        net.export(str(tmp_path / "net"))
    files = str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params")
    inputs = [f"data{i}" for i in range(len(arrays))] if len(arrays) > 1 else ["data"]
    blocks = [mx.graph.load(*files), SymbolBlock.imports(files[0], inputs, files[1])]
    for block in blocks:
        for mode in "sync", "async":
            with mx.config(engine_mode=mode):
                assert failure(block, *arrays)[:2] == (kind, name)
    blocks[1].hybridize()
    assert failure(blocks[1], *arrays)[:2] == (kind, name)


@pytest.mark.parametrize(
    ("call", "start"),
    [
        ("np.linalg.qr(np.ones(3), 'raw')", "qr: "),
        ("npx.roi_pooling(np.ones((1, 1, 2, 2)), np.ones((1, 4)), (2, 2), 1.0)", "roi_pooling: "),
        ("npx.roi_pooling(np.ones((1, 1, 2, 2)), np.array([[5, 0, 0, 1, 1]]), (2, 2), 1.0)", "roi_pooling: "),
        ("np.insert(np.ones(3), [7], 1)", "insert: index 7 is out of bounds"),
        ("np.delete(np.ones(3), [7])", "delete: index 7 is out of bounds"),
        ("np.indices((-1,))", "indices: negative dimension"),
        ("np.indices(('a',))", "indices: argument `dimensions`"),
        ("np.tril_indices('a')", "argument `n` must be an integer"),
        ("np.pad(np.ones(3), 1 << 61)", "pad: "),
        ("np.linalg.cond(np.ones((2, 3)), 1)", "inv: "),
        ("np.lib.stride_tricks.sliding_window_view(np.ones(3), 5)", "sliding_window_view: "),
        ("np.random.shuffle(np.ones(()))", "shuffle: "),
        ("np.random.default_rng(1).shuffle(np.ones((2, 3)), axis=5)", "shuffle: axis 5 is out of bounds"),
        ("np.random.default_rng(1).permutation(np.ones((2, 3)), axis=5)", "permutation: axis 5 is out of bounds"),
        ("np.random.default_rng(1).permuted(np.ones((2, 3)), axis=5)", "permuted: axis 5 is out of bounds"),
        ("np.random.default_rng(1).permuted(np.ones(()), axis=0)", "permuted: axis 0 is out of bounds"),
        ("np.random.default_rng(1).choice(np.ones((2, 3)), axis=5)", "choice: axis 5 is out of bounds"),
        ("np.random.default_rng(1).choice(3, 7, replace=False)", "choice: cannot take 7 of 3"),
        ("np.random.default_rng(1).choice(3, 7, p=[0.1, 0.2, 0.3])", "choice: probabilities do not sum to 1"),
        ("mx.gluon.loss.SoftmaxCrossEntropyLoss()(np.ones((2, 3)), np.ones(5))", "SoftmaxCrossEntropyLoss: `label`"),
        ("np.put(np.ones(3), [7], 1)", "put: index 7 is out of bounds"),
        ("np.put_along_axis(np.ones(3), np.array([7]), [1.0], 0)", "index 7 is out of bounds for axis 0 with size 3"),
        ("np.ones(3)[[7]]", "index 7 is out of bounds for axis 0 with size 3"),
        ("np.ones((2, 3))[:, np.array([7])]", "index 7 is out of bounds for axis 1 with size 3"),
        ("np.ones(3).__setitem__(np.array([7]), 1)", "index 7 is out of bounds for axis 0 with size 3"),
        ("np.add.at(np.ones(3), np.array([7]), 1)", "index 7 is out of bounds for axis 0 with size 3"),
    ],
)
def test_no_internal_operator_is_named(call, start):
    for mode in "sync", "async":
        with mx.config(engine_mode=mode):
            assert failure(lambda: eval(call, NAMES))[2].startswith(start)


def test_compositions_in_python_name_the_operator_that_failed():
    with pytest.raises(np.linalg.LinAlgError, match=r"^solve: "):
        np.linalg.tensorsolve(np.zeros((2, 3, 6)), np.ones((2, 3))).asnumpy()


def test_operands_of_a_part_are_said_to_be_its():
    with mx.config(engine_mode="async"), pytest.raises(np.linalg.LinAlgError) as raised:
        np.linalg.solve(np.zeros((2, 2)), np.ones(2)).asnumpy()
    first, *rest = str(raised.value).split("\n")
    assert first.startswith("solve: Singular matrix")
    assert rest[0] == "  operands of its part solve_stacks:"
    assert rest[2].startswith("  b: shape (2, 1)")


def test_code_of_a_custom_operator_is_not_a_part_of_it():
    @mx.operator.define(name="named_inverse")
    def inverse(x):
        return np.linalg.inv(x)

    with mx.config(engine_mode="async"), pytest.raises(np.linalg.LinAlgError, match=r"^inv: "):
        inverse(np.zeros((2, 2))).asnumpy()
