"""Programs of other tests, compiled: the coverage table, writes in place, training steps of four networks."""

import warnings
from typing import Any

import numpy
import pytest

import mxnet as mx
import np_coverage
from mxnet import autograd, gluon, np
from mxnet.error import AbstractArrayError
from programs import NETWORKS, WRITES, target

# Calls that need values on the host: for a Python result, for checks, or to choose what is computed.
NEEDS_VALUES = {
    "np.allclose(x, y)": "gives a Python truth value",
    "np.array2string(x)": "gives text",
    "np.array_equal(x, y)": "gives a Python truth value",
    "np.array_equiv(x, y)": "gives a Python truth value",
    "np.array_str(x)": "gives text",
    "np.asarray_chkfinite(x)": "raises an error that depends on values",
    "np.average(x, weights=y)": "raises an error that depends on values",
    "np.delete(i, j)": "the length of the result depends on values",
    "np.digitize(v, t)": "checks the order of the bins",
    "np.from_dlpack(x)": "exports memory",
    "np.geomspace(x, y, 3)": "chooses a formula by values",
    "np.histogram(v, 4)": "takes the range from values",
    "np.histogram2d(v, w)": "takes the range from values",
    "np.histogram_bin_edges(x)": "takes the range from values",
    "np.histogramdd(x)": "takes the range from values",
    "np.insert(v, 1, u[0])": "checks positions",
    "np.linalg.eig(spd)": "the dtype of the result depends on values",
    "np.linalg.eigvals(spd)": "the dtype of the result depends on values",
    "np.nanargmax(x)": "raises an error that depends on values",
    "np.nanargmin(x)": "raises an error that depends on values",
    "np.polydiv(v, u)": "the length of the result depends on values",
    "np.polyfit(t, t * t, 2)": "warns by values",
    "np.polymul(u, v)": "the length of the result depends on values",
    "np.random.bytes(4)": "gives bytes",
    "np.random.multivariate_normal(v[:4], spd)": "warns by values",
    "np.roots(u)": "the length of the result depends on values",
    "np.add.reduceat(v, k)": "checks positions",
    "x.item(1)": "gives a Python number",
    "x.tobytes()": "gives bytes",
    "x.tolist()": "gives a list",
}
UNDEFINED = {"np.empty(n)", "np.empty_like(x)"}


def bits(x):
    return x.shape, x.dtype, x.asnumpy().tobytes()


def same(found, expected):
    if isinstance(expected, np.ndarray):
        return type(found) is type(expected) and bits(found) == bits(expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected)


def test_every_call_of_the_coverage_table():
    probe = np_coverage.Probe()
    problems, refused = [], set()
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for text in probe.common_calls():
            # A generator is no array: what it draws would be the same at each call, and is refused (test_jit.py).
            if "default_rng" in text:
                continue
            eager, scopes = probe.ours(), [probe.ours(), probe.ours()]
            np.random.seed(1)
            expected = np_coverage.run(text, eager)
            rest = {name: x for name, x in scopes[0].items() if not isinstance(x, np.ndarray)}
            compiled = mx.jit(lambda arrays, text=text, rest=rest: np_coverage.run(text, {**rest, **arrays}))
            for scope in scopes:
                arrays = {name: x for name, x in scope.items() if isinstance(x, np.ndarray)}
                np.random.seed(1)
                try:
                    found = compiled(arrays)
                except AbstractArrayError:
                    refused.add(text)
                    break
                except Exception as error:  # noqa: BLE001  whatever is raised is a difference
                    problems.append(f"{text}: raises {error!r}")
                    break
                if text not in UNDEFINED and not same(found, expected):
                    problems.append(f"{text}: another result")
                changed = [name for name in arrays if not same(arrays[name], eager[name])]
                problems += [f"{text}: another `{name}`" for name in changed]
    assert not problems, "\n".join(problems)
    assert refused == set(NEEDS_VALUES)


@pytest.mark.parametrize("name", [name for name in WRITES if not name.startswith("Generator")])
def test_writes_in_place(name):
    write = WRITES[name]
    compiled = mx.jit(lambda x: write(x))
    for _ in range(2):
        eager, x = target(), target()
        np.random.seed(3)
        write(eager)
        np.random.seed(3)
        compiled(x)
        assert bits(x) == bits(eager)


def trained(build, optimizer, way):
    """Losses, parameters and gradients after some steps, the network called in one of three ways."""
    mx.random.seed(7)
    net, shape = build()
    net.initialize()
    x, labels = np.random.normal(0, 1, shape), np.array([0, 1, 2, 0, 1, 2])
    with autograd.pause():
        net(x)
    if way == "hybridized":
        net.hybridize()
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    options = {"learning_rate": 0.05, **({"momentum": 0.9} if optimizer == "sgd" else {})}
    trainer = gluon.Trainer(net.collect_params(), optimizer, options)

    def step(x, labels):
        with autograd.record():
            value = loss(net(x), labels)
        value.backward()
        trainer.step(6)
        return value

    run = mx.jit(step) if way == "whole step" else step
    losses = []
    for turn in range(4):
        if turn == 2:
            trainer.set_learning_rate(0.01)
        losses.append(bits(run(x, labels)))
    if way == "whole step":
        assert len(run.trace_report()) == 1
    if way == "hybridized":
        assert len(net.trace_report()) == 1
    parameters = list(net.collect_params().values())
    grads = [bits(p.grad()) for p in parameters if p.grad_req != "null"]
    return losses, [bits(p.data()) for p in parameters], grads


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lamb"])
@pytest.mark.parametrize("build", NETWORKS)
def test_training_steps(build, optimizer):
    expected = trained(build, optimizer, "as it is")
    assert trained(build, optimizer, "hybridized") == expected
    assert trained(build, optimizer, "whole step") == expected


@pytest.mark.parametrize("method", ["linear", "nearest", "hazen", "averaged_inverted_cdf"])
def test_nan_quantiles_of_rows_with_other_numbers_of_elements(method: str) -> None:
    generator = numpy.random.default_rng(3)
    x = generator.normal(size=(6, 7)).astype("float32")
    x[numpy.tril_indices(6)] = numpy.nan

    def quantiles(x: Any) -> Any:
        return np.nanquantile(x, [0.1, 0.5, 0.9], axis=1, method=method)

    found = mx.jit(quantiles)(np.array(x))
    assert numpy.array_equal(found.asnumpy(), quantiles(np.array(x)).asnumpy(), equal_nan=True)
    assert np.isnan(found[:, -1]).sum() == 0
