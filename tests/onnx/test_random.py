"""Random numbers of exported models have the distributions of ours."""

import json

import numpy as np
import pytest
import scipy.stats

import onnx_oracle
from mxnet import np as mnp
from mxnet import npx
from mxnet.gluon._export import prediction_graph
from mxnet.onnx._exporter.operators import translated_names
from probing import ENTRIES, op

COUNT = 4000
SHAPE = (COUNT,)
DISTRIBUTIONS = {
    "uniform": (lambda x: mnp.random.uniform(2, 3, SHAPE), scipy.stats.uniform(2, 1)),
    "normal": (lambda x: mnp.random.normal(1, 2, SHAPE), scipy.stats.norm(1, 2)),
    "exponential": (lambda x: mnp.random.exponential(2, SHAPE), scipy.stats.expon(0, 2)),
    "gumbel": (lambda x: mnp.random.gumbel(1, 2, SHAPE), scipy.stats.gumbel_r(1, 2)),
    "laplace": (lambda x: mnp.random.laplace(1, 2, SHAPE), scipy.stats.laplace(1, 2)),
    "logistic": (lambda x: mnp.random.logistic(1, 2, SHAPE), scipy.stats.logistic(1, 2)),
    "triangular": (lambda x: mnp.random.triangular(0, 1, 4, SHAPE), scipy.stats.triang(0.25, 0, 4)),
    "standard_normal": (lambda x: mnp.random.standard_normal(SHAPE), scipy.stats.norm()),
    "standard_exponential": (lambda x: mnp.random.standard_exponential(SHAPE), scipy.stats.expon()),
    "random": (lambda x: mnp.random.random(SHAPE), scipy.stats.uniform()),
    "random_sample": (lambda x: mnp.random.random_sample(SHAPE), scipy.stats.uniform()),
    "rand": (lambda x: mnp.random.rand(COUNT), scipy.stats.uniform()),
    "randn": (lambda x: mnp.random.randn(COUNT), scipy.stats.norm()),
}


def sampled(function, tmp_path):
    x = mnp.zeros(COUNT)
    net, _ = onnx_oracle.traced(lambda y: function(y) + y, [x])
    onnx_oracle.export(net, tmp_path / "x.onnx")
    return onnx_oracle.run(tmp_path / "x.onnx", [x])[0][0]


def operators(function):
    """Names of the operators in the graph of a function of an array."""
    net, _ = onnx_oracle.traced(lambda y: function(y) + y, [mnp.zeros(COUNT)])
    found, _, _ = prediction_graph(net, net._compiled, "test", any_batch=False)
    return {node["op"] for node in json.loads(found[0].export({})[0])["nodes"]}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_samples_have_the_distribution(name, tmp_path):
    function, wanted = DISTRIBUTIONS[name]
    # The runtime's seed is new at each run: one in 1e7 runs fails.
    assert scipy.stats.kstest(sampled(function, tmp_path), wanted.cdf).pvalue > 1e-7


def frequencies(values, count):
    assert set(np.unique(values)) <= set(range(count))
    return np.bincount(values.astype(int), minlength=count)


COUNTS = [
    (lambda x: mnp.random.randint(0, 5, SHAPE), np.full(5, 0.2)),
    (lambda x: op("bernoulli")(0.3, size=SHAPE), np.array([0.7, 0.3])),
    (lambda x: op("categorical")(mnp.array([0.5, 0.2, 0.3]), SHAPE), np.array([0.5, 0.2, 0.3])),
    (lambda x: npx.dropout(x + 1, 0.25, "always") * 0.75, np.array([0.25, 0.75])),
    (lambda x: mnp.random.randint(mnp.zeros(1, dtype="int32"), 3, SHAPE), np.full(3, 1 / 3)),
]


@pytest.mark.parametrize(("function", "weights"), COUNTS)
def test_counts_have_the_probabilities(function, weights, tmp_path):
    found = frequencies(sampled(function, tmp_path), len(weights))
    assert scipy.stats.chisquare(found, weights * COUNT).pvalue > 1e-7


def test_every_translated_sampler_is_run_here():
    samplers = {name for name in translated_names() if ENTRIES[name]["samples"]}
    functions = [function for function, _ in (*DISTRIBUTIONS.values(), *COUNTS)]
    assert samplers <= set().union(*map(operators, functions))
