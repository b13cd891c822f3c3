"""Nothing passes an interpreter by: a witness that hands calls down changes no bit and sees every array that is made
or written."""

import warnings

import numpy
import pytest

import mxnet as mx
import np_coverage
from mxnet import _core, autograd, gluon, np, npx
from mxnet.gluon import nn, rnn

# Calls whose arrays are made on the host, of Python's or NumPy's data: inputs of a graph, not results of operators.
FROM_HOST = {
    "np.from_dlpack(x)",
    "np.frombuffer(b'12345678', 'int64')",
    "np.fromiter([1, 2], 'int64')",
    "np.fromstring('1 2', sep=' ')",
}
# Elements that nobody has defined.
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
            plain, scope = probe.ours(), probe.ours()
            before = {name: bits(x) for name, x in scope.items() if isinstance(x, np.ndarray)}
            np.random.seed(1)
            expected = np_coverage.run(text, plain)
            np.random.seed(1)
            try:
                seen = Seen(lambda text=text, scope=scope: np_coverage.run(text, scope))
            except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                problems.append(f"{text}: raises {error!r}")
                continue
            if text not in UNDEFINED and not same(seen.result, expected):
                problems.append(f"{text}: another result")
            for name, x in plain.items():
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


def target():
    return np.array(numpy.arange(12.0).reshape(3, 4)[::-1] % 7)


def flat(x):
    x.flat[2:7] = np.array([5.0, 6.0])


def masked(x):
    x[x > 3] = -x[x > 3]


def through_view(x):
    x.T[1][::2] = 9


WRITES = {
    "element": lambda x: x.__setitem__((1, 2), 7.5),
    "slice": lambda x: x.__setitem__(slice(None, 2), 3),
    "row": lambda x: x.__setitem__(1, np.arange(4)),
    "row of a list": lambda x: x.__setitem__(1, [1, 2, 3, 4]),
    "own row": lambda x: x.__setitem__(slice(1, 3), x[:2]),
    "element of the array": lambda x: x.__setitem__((0, 0), x[2, 1]),
    "index array": lambda x: x.__setitem__(np.array([2, 0]), np.ones((2, 4))),
    "index arrays": lambda x: x.__setitem__((np.array([2, 0]), np.array([1, 3])), 8),
    "mask": masked,
    "mask, number": lambda x: x.__setitem__(x > 2, 0),
    "view": through_view,
    "flat": flat,
    "fill": lambda x: x.fill(2.5),
    "sort": lambda x: x.sort(),
    "sort, first axis": lambda x: x.sort(axis=0),
    "partition": lambda x: x.partition(2),
    "put": lambda x: x.put([1, 3, 5], [8, 9]),
    "np.put": lambda x: np.put(x, np.array([1, 3]), np.array([4.0, 5.0])),
    "put_along_axis": lambda x: np.put_along_axis(x, np.array([[1], [0], [2]]), 7, 1),
    "place": lambda x: np.place(x, x > 3, [1, 2]),
    "putmask": lambda x: np.putmask(x, x > 3, [1, 2]),
    "copyto": lambda x: np.copyto(x, np.arange(4)),
    "copyto, number": lambda x: np.copyto(x, 4.5),
    "copyto, mask": lambda x: np.copyto(x, 4.5, where=x > 3),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 6),
    "shuffle": lambda x: np.random.shuffle(x),
    "Generator.shuffle": lambda x: np.random.default_rng(1).shuffle(x),
    "Generator.permuted": lambda x: np.random.default_rng(1).permuted(x, out=x),
    "Generator.random": lambda x: np.random.default_rng(1).random(out=x),
    "+=": lambda x: x.__iadd__(np.arange(4)),
    "out": lambda x: np.exp(x, out=x),
    "out of a view": lambda x: np.exp(x.T, out=x.T),
    "out of another layout": lambda x: np.matmul(np.ones((4, 3)), np.ones((3, 3)), out=x.T),
    "out of a composite": lambda x: np.clip(x.T, 1, 3, out=x.T),
    "add.at": lambda x: np.add.at(x, np.array([0, 0, 2]), 2),
    "real": lambda x: x.real.__setitem__(0, 5),
}


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
    plain, x = target().astype(dtype), target().astype(dtype)
    np.random.seed(3)
    WRITES[name](plain)
    before = bits(x)
    np.random.seed(3)
    seen = Seen(lambda: WRITES[name](x))
    assert bits(x) == bits(plain)
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

    plain, x = target(), target()
    for array in (plain, x):
        array.attach_grad()
    expected = work(plain)
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


class Attention(gluon.HybridBlock):
    """One head over a sequence, a norm and a classifier."""

    def __init__(self):
        super().__init__()
        self.project = nn.Dense(24, flatten=False)
        self.norm = nn.LayerNorm()
        self.classify = nn.Dense(3)

    def forward(self, x):
        q, k, v = np.split(self.project(x), 3, axis=-1)
        weights = npx.softmax(np.matmul(q, np.swapaxes(k, 1, 2)) / 8**0.5, axis=-1)
        return self.classify(self.norm(np.matmul(weights, v) + x))


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dropout(0.3), nn.Dense(3))
    return net, (6, 8)


def convolutional():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dropout(0.3), nn.Dense(3))
    return net, (6, 2, 8, 8)


def recurrent():
    net = nn.HybridSequential()
    net.add(rnn.LSTM(8, layout="NTC"), nn.Dense(3))
    return net, (6, 5, 4)


def attentive():
    return Attention(), (6, 5, 8)


def trained(build, optimizer):
    """Losses, parameters, gradients and states of the optimizer after some steps."""
    mx.random.seed(7)
    net, shape = build()
    net.initialize()
    x, labels = np.random.normal(0, 1, shape), np.array([0, 1, 2, 0, 1, 2])
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.05, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    trainer = gluon.Trainer(net.collect_params(), optimizer, options)
    losses = []
    for _ in range(3):
        with autograd.record():
            value = loss(net(x), labels)
        value.backward()
        trainer.step(6)
        losses.append(value)
    parameters = list(net.collect_params().values())
    return losses, [p.data() for p in parameters], [p.grad() for p in parameters if p.grad_req != "null"]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("build", [mlp, convolutional, recurrent, attentive])
def test_training_steps(build, optimizer):
    expected = trained(build, optimizer)
    seen = Seen(lambda: trained(build, optimizer))
    assert same(seen.result, expected)
    assert not seen.unseen
    losses, parameters, gradients = seen.result
    assert storages(losses) <= seen.made
    assert storages(parameters) | storages(gradients) <= seen.written
