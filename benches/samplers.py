"""Samplers against NumPy's Generator: a million samples of each distribution. Arguments pick cases by words.

NumPy draws float64 (float32 where its method has `dtype`); ours are timed in the default float32 and in float64.
"""

import numpy
from _sides import OURS, Table

import mxnet as mx
from mxnet import np

N = 1_000_000
CONTINUOUS = {
    "random": (),
    "standard_normal": (),
    "standard_exponential": (),
    "standard_gamma": (2.5,),
    "uniform": (1.0, 3.0),
    "normal": (1.0, 2.0),
    "exponential": (2.0,),
    "gumbel": (),
    "laplace": (),
    "logistic": (),
    "lognormal": (),
    "rayleigh": (),
    "weibull": (1.7,),
    "pareto": (3.0,),
    "power": (2.5,),
    "triangular": (-1.0, 2.0, 4.0),
    "standard_cauchy": (),
    "standard_t": (4.0,),
    "gamma": (0.5, 2.0),
    "chisquare": (3.0,),
    "beta": (2.0, 0.7),
    "f": (5.0, 7.0),
    "wald": (2.0, 3.0),
    "noncentral_chisquare": (3.0, 2.0),
    "noncentral_f": (5.0, 9.0, 2.0),
    "vonmises": (0.0, 4.0),
}
COUNTS = {
    "poisson": [(4.0,), (100.0,), (1e5,)],
    "binomial": [(20, 0.25), (1000, 0.4), (10**7, 0.4)],
    "negative_binomial": [(2.5, 0.4)],
    "geometric": [(0.3,)],
    "hypergeometric": [(70, 110, 50)],
    "logseries": [(0.6,)],
    "zipf": [(2.5,)],
}
NARROW = {"random", "standard_normal", "standard_exponential", "standard_gamma"}


def main() -> None:
    theirs, ours = numpy.random.default_rng(1), np.random.default_rng(1)
    table = Table("random numbers, 1e6 each", [OURS, "NumPy"])

    def add(name, mine, other):
        # The numbers differ, so there is nothing to compare.
        table.add(name, {OURS: mine, "NumPy": other}, rtol=None, turns=5)

    def case(method, parameters, options):
        return lambda: method(*parameters, size=N, **options)

    for name, parameters in CONTINUOUS.items():
        for dtype in ("float32", "float64"):
            options = {"dtype": dtype}
            mine = case(getattr(ours, name), parameters, options)
            add(f"{name} {dtype}", mine, case(getattr(theirs, name), parameters, options if name in NARROW else {}))
    for name, cases in COUNTS.items():
        for parameters in cases:
            other = case(getattr(theirs, name), parameters, {})
            add(f"{name} {parameters}", case(getattr(ours, name), parameters, {}), other)
    means = numpy.linspace(1, 40, N)
    means_ours = np.array(means, dtype="float64")
    add("poisson of array", lambda: ours.poisson(means_ours), lambda: theirs.poisson(means))
    add("gamma of array", lambda: ours.standard_gamma(means_ours), lambda: theirs.standard_gamma(means))
    add("integers below 1000", lambda: ours.integers(0, 1000, N), lambda: theirs.integers(0, 1000, N))
    add("integers below 2**40", lambda: ours.integers(0, 2**40, N), lambda: theirs.integers(0, 2**40, N))
    add("integers int32", lambda: ours.integers(0, 99, N, "int32"), lambda: theirs.integers(0, 99, N, "int32"))
    add("permutation", lambda: ours.permutation(N), lambda: theirs.permutation(N))
    x, y = np.zeros((N,), dtype="float64"), numpy.zeros(N)
    add("shuffle", lambda: ours.shuffle(x), lambda: theirs.shuffle(y))
    square, other_square = np.zeros((1000, 1000)), numpy.zeros((1000, 1000))
    add("permuted rows", lambda: ours.permuted(square, axis=1), lambda: theirs.permuted(other_square, axis=1))
    add("choice", lambda: ours.choice(1000, N), lambda: theirs.choice(1000, N))
    p = numpy.full(100, 0.01)
    p_ours = np.array(p, dtype="float64")
    add("choice p", lambda: ours.choice(100, N, p=p_ours), lambda: theirs.choice(100, N, p=p))
    half = N // 2
    add("choice half", lambda: ours.choice(N, half, replace=False), lambda: theirs.choice(N, half, replace=False))
    add("choice few", lambda: ours.choice(N, 100, replace=False), lambda: theirs.choice(N, 100, replace=False))
    q = [0.2, 0.3, 0.5]
    add("multinomial 1e5 rows", lambda: ours.multinomial(20, q, N // 10), lambda: theirs.multinomial(20, q, N // 10))
    add("dirichlet 1e5 rows", lambda: ours.dirichlet(q, N // 10), lambda: theirs.dirichlet(q, N // 10))
    add(
        "multivariate_hypergeometric 1e5 rows",
        lambda: ours.multivariate_hypergeometric([16, 8, 4], 6, N // 10),
        lambda: theirs.multivariate_hypergeometric([16, 8, 4], 6, N // 10, method="marginals"),
    )
    add("normal, one", lambda: ours.normal(), lambda: theirs.normal())
    mx.waitall()


if __name__ == "__main__":
    main()
