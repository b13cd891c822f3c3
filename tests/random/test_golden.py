"""The numbers of a seed as they have always been: programs rely on their seeds."""

import json
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np, npx

PARAMETERS = {
    "beta": (2.0, 0.7),
    "binomial": (20, 0.25),
    "chisquare": (3.0,),
    "choice": (1000,),
    "dirichlet": ([0.5, 2.0],),
    "exponential": (2.0,),
    "f": (5.0, 7.0),
    "gamma": (2.5, 2.0),
    "geometric": (0.3,),
    "gumbel": (1.0, 2.0),
    "hypergeometric": (7, 11, 5),
    "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0),
    "lognormal": (0.5, 0.75),
    "logseries": (0.9,),
    "multinomial": (20, [0.2, 0.8]),
    "negative_binomial": (2.5, 0.4),
    "noncentral_chisquare": (3.0, 2.0),
    "noncentral_f": (5.0, 9.0, 2.0),
    "normal": (1.0, 2.0),
    "pareto": (3.0,),
    "poisson": (4.0,),
    "power": (2.5,),
    "randint": (1000,),
    "random": (),
    "rayleigh": (2.0,),
    "standard_cauchy": (),
    "standard_exponential": (),
    "standard_gamma": (0.5,),
    "standard_normal": (),
    "standard_t": (4.0,),
    "triangular": (-1.0, 2.0, 4.0),
    "uniform": (-2.0, 3.0),
    "vonmises": (1.0, 2.0),
    "wald": (2.0, 3.0),
    "weibull": (1.7,),
    "zipf": (1.5,),
}
# Whose functions have no `dtype`.
WITHOUT_DTYPE = {"choice", "multinomial"}
OTHERS = {
    "bernoulli": lambda: npx.random.bernoulli(0.5, size=8),
    "binomial of arrays": lambda: np.random.binomial(np.array([5, 500, 50_000]), 0.4),
    "categorical": lambda: npx.random.categorical(np.array([[0.2, 0.3, 0.5]]), shape=8),
    "choice without replacement": lambda: np.random.choice(10**6, 5, replace=False),
    "choice with weights": lambda: np.random.choice(5, 8, p=[0.1, 0.2, 0.3, 0.3, 0.1]),
    "hypergeometric of arrays": lambda: np.random.hypergeometric(
        np.array([7, 4000]), np.array([11, 3000]), np.array([5, 2000])
    ),
    "gamma of arrays": lambda: np.random.gamma(np.array([0.1, 1.0, 30.0]), dtype="float64"),
    "generator": lambda: np.random.default_rng([5, 7]).random(4, dtype="float64"),
    "integers of 64 bits": lambda: np.random.randint(0, 10**12, size=4),
    "integers of arrays": lambda: np.random.randint(np.array([0, 10]), np.array([10, 10**10])),
    "multivariate hypergeometric": lambda: np.random.default_rng(5).multivariate_hypergeometric([16, 8, 4], 6, 3),
    "negative binomial of arrays": lambda: np.random.negative_binomial(np.array([0.5, 20.0]), 0.3),
    "permutation": lambda: np.random.permutation(8),
    "permuted": lambda: np.random.default_rng(5).permuted(np.array([[1, 2, 3, 4], [5, 6, 7, 8]]), axis=1),
    "poisson of arrays": lambda: np.random.poisson(np.array([0.5, 20.0, 3e4])),
    "spawned": lambda: np.random.default_rng(5).spawn(2)[1].random(4, dtype="float64"),
}
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text())


def drawn(name):
    mx.random.seed(20)
    if name in OTHERS:
        return OTHERS[name]()
    name, _, dtype = name.partition(" ")
    options = {"dtype": dtype} if dtype else {}
    return getattr(np.random, name)(*PARAMETERS[name], size=5, **options)


def names():
    wide = [f"{name} float64" for name in sorted(set(PARAMETERS) - WITHOUT_DTYPE) if drawn(name).dtype == "float32"]
    return [*sorted(PARAMETERS), *wide, *sorted(OTHERS)]


@pytest.mark.parametrize("name", names())
def test_seed_20_gives_the_numbers_it_has_always_given(name):
    found, want = drawn(name).asnumpy(), onp.array(GOLDEN[name])
    # Elementary functions may differ by an ulp between instruction sets; a sample may be a difference of them.
    rtol, atol = {"float32": (2e-6, 1e-6), "float64": (1e-13, 1e-14)}.get(found.dtype.name, (0, 0))
    assert onp.allclose(found, want, rtol=rtol, atol=atol), found.tolist()


def test_no_golden_value_is_left_over():
    assert set(GOLDEN) == set(names())


if __name__ == "__main__":
    values = {name: drawn(name).asnumpy().tolist() for name in names()}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(values[name])}" for name in values)
    (Path(__file__).parent / "golden.json").write_text("{\n" + lines + "\n}\n")
