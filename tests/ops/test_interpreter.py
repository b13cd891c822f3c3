"""Interpreters see every call: one that only passes calls on changes no bit and sees all arrays made or written."""

import warnings

import numpy
import pytest

import np_coverage
from mxnet import _core, autograd, np
from programs import NETWORKS, WRITES, target, trained

# Calls whose arrays are made on the host, of Python's or NumPy's data: inputs of a graph, not results of operators.
FROM_HOST = {
    "np.from_dlpack(x)",
    "np.frombuffer(b'12345678', 'int64')",
    "np.fromiter([1, 2], 'int64')",
    "np.fromstring('1 2', sep=' ')",
}
# Calls whose elements are undefined.
UNDEFINED = {"np.empty(n)", "np.empty_like(x)"}


def arrays(result):
    """The arrays in a result, whatever it is made of."""
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    return [array for item in result for array in arrays(item)] if isinstance(result, list | tuple) else []


def bits(array):
    return array.shape, array.dtype, array.asnumpy().tobytes()


def same(found, expected):
    """Whether two results are equal bit for bit."""
    if isinstance(expected, np.ndarray):
        return type(found) is type(expected) and bits(found) == bits(expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, numpy.ndarray):
        return found.tobytes() == expected.tobytes()
    return type(found) is type(expected)


def storages(found):
    return {_core.storage_of(array) for array in found}


class Seen:
    """What a witness saw of a function, and its result."""

    def __init__(self, body):
        self.result, self.calls, self.unseen = _core.witnessed(body)
        primitive = [call for call in self.calls if not call.is_composite]
        self.written = {storage for call in primitive for storage in call.written}
        self.made = {storage for call in primitive for storage in call.outputs}


def test_every_call_of_the_coverage_table():
    probe = np_coverage.Probe()
    calls = probe.common_calls()
    assert len(calls) > 500
    problems, from_host = [], set()
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for text in calls:
            eager, scope = probe.ours(), probe.ours()
            before = {name: bits(x) for name, x in scope.items() if isinstance(x, np.ndarray)}
            np.random.seed(1)
            expected = np_coverage.run(text, eager)
            np.random.seed(1)
            try:
                seen = Seen(lambda text=text, scope=scope: np_coverage.run(text, scope))
            except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                problems.append(f"{text}: raises {error!r}")
                continue
            if text not in UNDEFINED and not same(seen.result, expected):
                problems.append(f"{text}: another result")
            for name, x in eager.items():
                if isinstance(x, np.ndarray) and not same(scope[name], x):
                    problems.append(f"{text}: another `{name}`")
            if seen.unseen:
                problems.append(f"{text}: {len(seen.unseen)} unseen writes")
            for name, was in before.items():
                if bits(scope[name]) != was and _core.storage_of(scope[name]) not in seen.written:
                    problems.append(f"{text}: `{name}` is written unseen")
            given = storages(x for name, x in scope.items() if isinstance(x, np.ndarray) and name in before)
            if storages(arrays(seen.result)) - given - seen.made - seen.written:
                from_host.add(text)
    assert not problems, "\n".join(problems)
    assert from_host == FROM_HOST


FLOATS_ONLY = {"out", "out of a view", "out of another layout", "Generator.random", "copyto, number", "copyto, mask"}
ORDERED_ONLY = {"out of a composite", "mask", "mask, number", "place", "putmask", "copyto, mask"}


def write_cases():
    for name in WRITES:
        for dtype in ("float32", "float64", "int64", "complex64"):
            fits = dtype == "float64" if name in FLOATS_ONLY else dtype != "complex64" or name not in ORDERED_ONLY
            if fits:
                yield name, dtype


@pytest.mark.parametrize(("name", "dtype"), list(write_cases()))
def test_writes_are_calls_that_name_what_they_write(name, dtype):
    eager, x = target().astype(dtype), target().astype(dtype)
    np.random.seed(3)
    WRITES[name](eager)
    before = bits(x)
    np.random.seed(3)
    seen = Seen(lambda: WRITES[name](x))
    assert bits(x) == bits(eager)
    assert not seen.unseen
    assert bits(x) == before or _core.storage_of(x) in seen.written


@pytest.mark.parametrize("name", ["element", "slice", "row", "index array", "mask, number", "view", "fill", "+="])
def test_recorded_writes(name):
    def work(x):
        with autograd.record():
            y = x * 2
            WRITES[name](y)
            z = (y * y).sum()
        z.backward()
        return y, x.grad

    eager, x = target(), target()
    for array in (eager, x):
        array.attach_grad()
    expected = work(eager)
    seen = Seen(lambda: work(x))
    assert same(seen.result, expected)
    assert not seen.unseen
    assert storages(seen.result) <= seen.made | seen.written
    assert _core.storage_of(x.grad) in seen.written


CONVERSIONS = {
    "astype": lambda x: x.astype("int32"),
    "astype, same": lambda x: x.astype(x.dtype),
    "astype of a view": lambda x: x.T.astype("float16"),
    "asarray": lambda x: np.asarray(x, dtype="float16"),
    "array": lambda x: np.array(x),
    "copy": lambda x: x.copy(),
    "np.copy": lambda x: np.copy(x.T),
    "Fortran": lambda x: np.asfortranarray(x),
    "contiguous": lambda x: np.ascontiguousarray(x.T),
    "flatten": lambda x: x.flatten(),
    "ravel": lambda x: x.T.ravel(),
    "element": lambda x: x[1, 1],
    "imag": lambda x: np.imag(x),
    "x.imag": lambda x: x.imag,
    "zeros": lambda x: np.zeros((2, 3)),
    "full": lambda x: np.full((2, 3), 5),
    "ones_like": lambda x: np.ones_like(x),
    "arange": lambda x: np.arange(5),
    "tril": lambda x: np.tril(x),
    "negative": lambda x: -x[0, 0],
    "sum": lambda x: x.sum(),
    "max": lambda x: x.max(axis=0, out=np.zeros(4)),
    "vdot": lambda x: np.vdot(x, x / 3),
    "vdot, complex": lambda x: np.vdot(x + 1j * x, x / 3 + 1j),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x / 3),
    "einsum of three": lambda x: np.einsum("ij,kj,k->i", x, x / 3, x[:, 1] / 7),
    "einsum, diagonal": lambda x: np.einsum("ii->i", x[:, :3]),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions_and_new_arrays_are_calls(name):
    x = target()
    expected = CONVERSIONS[name](x)
    seen = Seen(lambda: CONVERSIONS[name](x))
    assert same(seen.result, expected)
    assert not seen.unseen
    assert storages([seen.result]) <= seen.made | seen.written | storages([x])


@pytest.mark.parametrize("req", ["write", "add"])
def test_gradient_buffers_are_written_by_calls(req):
    def work(x):
        x.attach_grad(req)
        first = x.grad
        for _ in range(2):
            with autograd.record():
                y = (x * x).sum()
            y.backward()
        return x.grad, first

    expected = work(target())
    x = target()
    seen = Seen(lambda: work(x))
    assert same(seen.result, expected)
    assert not seen.unseen
    assert storages(seen.result) <= seen.written & seen.made


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("build", NETWORKS)
def test_training_steps(build, optimizer):
    expected = trained(build, optimizer)
    seen = Seen(lambda: trained(build, optimizer))
    assert same(seen.result, expected)
    assert not seen.unseen
    losses, parameters, gradients = seen.result
    assert storages(losses) <= seen.made
    assert storages(parameters) | storages(gradients) <= seen.written
