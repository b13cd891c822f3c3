"""The cases that the package `onnx` has for backends: operators of all operator sets, eager and hybridized."""

from pathlib import Path

import onnx
import pytest
from onnx.backend.test.loader import DATA_DIR

import mxnet as mx
import onnx_cases
from mxnet.error import IOError, UnsupportedError

HERE = Path(__file__).parent
CASES = onnx_cases.cases("node", "simple", "pytorch-converted", "pytorch-operator")
EXCEPTIONS = onnx_cases.exceptions(HERE / "not_imported.txt")
ERRORS = {"UnsupportedError": UnsupportedError, "IOError": IOError}


def identify(case):
    return f"{case.kind}-{case.name.removeprefix('test_')}"


def run(model, sets, case):
    """The network of a model, after it gave the results of its case."""
    net = mx.onnx.import_to_gluon(model)
    for inputs, outputs in sets:
        given = {declared.name: value for declared, value in zip(model.graph.input, inputs, strict=False)}
        result = net(*(onnx_cases.arrays(given[name]) for name in net.input_names))
        for expected, found in zip(outputs, onnx_cases.as_list(result, model), strict=True):
            onnx_cases.check(expected, found, case.rtol, case.atol)
    return net


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_a_model_gives_the_results_of_its_case(case):
    model, sets = case.load()
    exception = onnx_cases.exception_for(case.name, EXCEPTIONS)
    with onnx_cases.no_warnings():
        if exception is None:
            run(model, sets, case)
        elif exception[0] == "random":
            net = mx.onnx.import_to_gluon(model)
            for inputs, outputs in sets:
                result = onnx_cases.as_list(net(*map(onnx_cases.arrays, inputs)), model)
                for expected, found in zip(outputs, result, strict=True):
                    assert (expected.shape, expected.dtype) == (found.shape, found.dtype)
        elif exception[0] == "differs":
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                run(model, sets, case)
        else:
            with pytest.raises(ERRORS[exception[0]]):
                run(model, sets, case)


@pytest.mark.parametrize(
    "case", [case for case in CASES if onnx_cases.exception_for(case.name, EXCEPTIONS) is None], ids=identify
)
def test_a_hybridized_model_gives_the_bits_of_the_eager_one(case):
    model, sets = case.load()
    with onnx_cases.no_warnings():
        inputs = sets[0][0]
        if len(inputs) == len(model.graph.input):
            model, inputs = onnx_cases.with_initializers(model, inputs)
        net = mx.onnx.import_to_gluon(model)
        args = [onnx_cases.arrays(value) for value in inputs]
        eager = onnx_cases.as_list(net(*args), model)
        net.hybridize()
        for one, other in zip(eager, onnx_cases.as_list(net(*args), model), strict=True):
            _check_bits(one, other)


def _check_bits(one, other):
    if isinstance(one, list):
        assert len(one) == len(other)
        for x, y in zip(one, other, strict=True):
            _check_bits(x, y)
        return
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert one.asnumpy().tobytes() == other.asnumpy().tobytes()


@pytest.mark.parametrize(
    "name", ["densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet"]
)
def test_convolutional_networks_of_practice_give_their_results(name):
    folder = Path(DATA_DIR) / "light"
    net = mx.onnx.import_to_gluon(folder / f"light_{name}.onnx")
    expected = onnx.load_tensor(folder / f"light_{name}_output_0.pb")
    x = mx.np.arange(224 * 224 * 3, dtype="float32").reshape(1, 3, 224, 224) / (224 * 224 * 3)
    onnx_cases.check(expected, net(x), rtol=1e-3, atol=1e-7)


def test_the_list_of_exceptions_names_cases_only():
    names = {case.name for case in CASES}
    for row in EXCEPTIONS:
        assert any(onnx_cases.exception_for(name, [row]) for name in names), row
