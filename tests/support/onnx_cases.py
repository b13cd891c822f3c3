"""The test cases that the package `onnx` ships for backends: models, arguments and what they must give."""

import contextlib
import fnmatch
import glob
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import numpy_helper

import mxnet as mx
from mxnet.base import dtype_name

# Numbers of two bytes are rounded at each operator, or once: results may differ by twice their precision.
_HALF_TOLERANCE = {"float16": 2 * 2.0**-10, "bfloat16": 2 * 2.0**-7}


@dataclass
class Case:
    """One model with its arguments and results."""

    name: str
    kind: str
    rtol: float
    atol: float
    source: Any  # what `onnx` knows of the case

    def load(self) -> tuple[onnx.ModelProto, list[tuple[list, list]]]:
        """The model, and pairs of arguments and results."""
        if self.source.model is not None:
            return self.source.model, self.source.data_sets
        folder = self.source.model_dir
        model = onnx.load(os.path.join(folder, "model.onnx"))
        sets = []
        for data in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
            sets.append(tuple(_read_all(data, prefix, getattr(model.graph, prefix)) for prefix in ("input", "output")))
        return model, sets


def _read_all(folder: str, prefix: str, declared: Any) -> list:
    found = []
    for number in range(len(glob.glob(os.path.join(folder, f"{prefix}_*.pb")))):
        content = Path(folder, f"{prefix}_{number}.pb").read_bytes()
        kind = declared[number].type.WhichOneof("value")
        proto, read = {
            "sequence_type": (onnx.SequenceProto(), numpy_helper.to_list),
            "optional_type": (onnx.OptionalProto(), numpy_helper.to_optional),
        }.get(kind, (onnx.TensorProto(), numpy_helper.to_array))
        proto.ParseFromString(content)
        found.append(read(proto))
    return found


def cases(*kinds: str) -> list[Case]:
    """All cases of these kinds: "node", "simple", "pytorch-converted", "pytorch-operator"."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `onnx` computes edge values to make its cases
        found = [Case(c.name, kind, c.rtol, c.atol, c) for kind in kinds for c in load_model_tests(kind=kind)]
    assert len({(case.kind, case.name) for case in found}) == len(found)
    return found


def exceptions(path: Path) -> list[tuple[str, str, str]]:
    """Lines of a list: pattern of names, what happens, reason."""
    rows = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, outcome, reason = line.split(None, 2)
            rows.append((pattern, outcome, reason))
    return rows


def exception_for(name: str, rows: list[tuple[str, str, str]]) -> tuple[str, str] | None:
    """What the list says of a case."""
    return next((row[1:] for row in rows if fnmatch.fnmatchcase(name, row[0])), None)


def _host(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, numpy.ndarray) and value.dtype.name in ("int4", "int2", "uint4", "uint2"):
        return value.astype("uint8" if value.dtype.name[0] == "u" else "int8")
    return value


def arrays(value: Any) -> Any:
    """A value of a case as our arrays."""
    if isinstance(value, list):
        return [arrays(item) for item in value]
    return None if value is None else mx.np.array(_host(value))


def as_list(result: Any, model: onnx.ModelProto) -> list:
    return list(result) if len(model.graph.output) > 1 else [result]


def check(expected: Any, found: Any, rtol: float, atol: float) -> None:
    """Assert that a result has the dtype, shape and, up to rounding, the elements that the case gives."""
    if isinstance(expected, list):
        assert isinstance(found, list) and len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            check(one, other, rtol, atol)
        return
    if expected is None:
        assert found is None
        return
    expected = numpy.asarray(_host(expected))
    dtype = dtype_name(expected.dtype)
    assert dtype == dtype_name(found.dtype)
    assert expected.shape == found.shape
    elements = found.asnumpy()
    if dtype in _HALF_TOLERANCE:
        elements, expected = elements.astype("float64"), expected.astype("float64")
        rtol = max(rtol, _HALF_TOLERANCE[dtype])
    numpy.testing.assert_allclose(elements, expected, rtol=rtol, atol=atol)


def with_initializers(model: onnx.ModelProto, inputs: list) -> tuple[onnx.ModelProto, list]:
    """The model with integers and small arguments as constants, as models of practice have them, and the others."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = []
    for declared, value in zip(model.graph.input, inputs, strict=True):
        host = _host(value)
        is_array = isinstance(host, numpy.ndarray | numpy.generic)
        if is_array and (host.dtype.kind in "iub" or host.size <= 8) and host.ndim <= 1:
            changed.graph.initializer.append(numpy_helper.from_array(numpy.asarray(host), declared.name))
        else:
            kept.append(value)
    return changed, kept


@contextlib.contextmanager
def no_warnings():
    """Elements that overflow are part of some cases."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
