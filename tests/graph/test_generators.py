"""Compiled functions draw from generators of their own as the functions themselves do."""

import numpy
import pytest

import mxnet as mx
from mxnet import autograd, gluon, np


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def data(*shape, seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape).astype("float32"))


def runs(make, count=4, compile_=lambda f: f):
    """The results of some calls of a function that was made with new generators, and where these are afterwards."""
    mx.random.seed(5)
    first, second = np.random.default_rng(1), np.random.default_rng(2)
    f = compile_(make(first, second))
    results = [bits(f(data(3 + i % 2, seed=i))) for i in range(count)]
    ends = [generator.bit_generator.state for generator in (first, second)]
    return results, ends, np.random.uniform(size=2).tolist()


SEQUENCE = np.random.SeedSequence()

FUNCTIONS = {
    "one": lambda a, b: lambda x: x + a.normal(size=x.shape),
    "two and the process's": lambda a, b: (
        lambda x: a.normal(size=x.shape) + np.random.uniform(size=x.shape) * b.uniform(size=x.shape) + a.normal() + x
    ),
    "integers": lambda a, b: lambda x: x * a.integers(0, 9, size=x.shape) + b.permutation(x.shape[0]),
    "not used": lambda a, b: lambda x: (a.normal(size=7), x * b.normal(size=x.shape))[1],
    "made of a seed": lambda a, b: lambda x: x + np.random.default_rng(3).normal(size=x.shape) + a.normal(),
    "made of a sequence": lambda a, b: (
        lambda x: np.random.Generator(np.random.Philox(np.random.SeedSequence(4))).normal(size=x.shape) + x
    ),
    "made of another's sequence": lambda a, b: lambda x: np.random.default_rng(SEQUENCE).normal(size=4) * x[1],
    "made of a key": lambda a, b: (
        lambda x: np.random.Generator(np.random.Philox(key=9, counter=3)).normal(size=5) + x[0]
    ),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_generators_draw_what_they_draw_in_the_function(name, dynamic):
    make = FUNCTIONS[name]
    compiled = []

    def compile_(f):
        compiled.append(mx.jit(f, dynamic=dynamic))
        return compiled[0]

    assert runs(make, compile_=compile_) == runs(make)
    reports = compiled[0].trace_report()
    assert len(reports) == (1 if dynamic else 2)
    assert not any("note" in report for report in reports)


@pytest.mark.parametrize("seed", [lambda: None, np.random.SeedSequence, lambda: np.random.SeedSequence().spawn(1)[0]])
def test_generators_made_without_a_seed_go_on(seed):
    compiled = mx.jit(lambda x: x + np.random.default_rng(seed()).normal(size=3))
    found = [compiled(np.zeros(3)).tolist() for _ in range(4)]
    assert len({tuple(row) for row in found}) == 4
    again = mx.jit(lambda x: x + np.random.default_rng(seed()).normal(size=3))
    assert again(np.zeros(3)).tolist() not in found


def test_gradients_see_the_numbers_of_the_call():
    def noisy(generator):
        return lambda x: (np.tanh(x * generator.normal(size=x.shape)) ** 2).sum()

    found = []
    for way in (lambda f: f, mx.jit):
        f = way(noisy(np.random.default_rng(8)))
        for seed in range(3):
            x = data(4, seed=seed)
            x.attach_grad()
            with autograd.record():
                first = autograd.grad(f(x), x, create_graph=True)
                penalty = (first * first).sum()
            penalty.backward()
            found.append((bits(first), bits(x.grad)))
    assert found[:3] == found[3:]


def test_what_a_trace_would_do_once_is_refused():
    generator = np.random.default_rng(1)
    for use in (
        lambda x: generator.spawn(1)[0].normal(size=3) + x,
        lambda x: (generator.bit_generator.state, x * 2)[1],
    ):
        with pytest.raises(mx.error.UnsupportedError, match="called once while a function is traced"):
            mx.jit(use)(data(3))
    assert generator.normal(size=2).tolist() == np.random.default_rng(1).normal(size=2).tolist()


def test_functions_in_pieces_with_a_generator_run_as_they_are():
    found = []
    for way in (lambda f: f, mx.jit):
        generator = np.random.default_rng(1)
        f = way(lambda x, generator=generator: x[x > 0] + generator.normal())
        found.append([bits(f(data(5, seed=seed))) for seed in range(3)])
    assert found[0] == found[1]
    (report,) = f.trace_report()
    assert "it draws random numbers from a generator" in report["note"]


def test_files_do_not_hold_generators(tmp_path):
    class Noisy(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.generator = np.random.default_rng(1)

        def forward(self, x):
            return x + self.generator.normal(size=x.shape)

    net = Noisy()
    net.hybridize()
    net(data(3))
    with pytest.raises(mx.error.UnsupportedError, match="draws from a generator of its own, which a file cannot hold"):
        net.export(tmp_path / "net")


def test_passes_keep_generators():
    @mx.graph.register_pass(name="leave_as_it_is", backend=True)
    def leave(graph):
        graph.name = graph.name

    def make(a, b):
        return lambda x: x + a.normal(size=x.shape) * b.normal()

    try:
        assert runs(make, compile_=lambda f: mx.jit(f, backend="leave_as_it_is")) == runs(make)
    finally:
        mx.graph.unregister_pass("leave_as_it_is")
