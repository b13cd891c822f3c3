"""Distributions, divergences between them and constraints on their parameters."""

from mxnet.gluon.probability.distributions import constraint, utils
from mxnet.gluon.probability.distributions.bernoulli import Bernoulli
from mxnet.gluon.probability.distributions.beta import Beta
from mxnet.gluon.probability.distributions.binomial import Binomial
from mxnet.gluon.probability.distributions.categorical import Categorical
from mxnet.gluon.probability.distributions.cauchy import Cauchy
from mxnet.gluon.probability.distributions.chi2 import Chi2
from mxnet.gluon.probability.distributions.dirichlet import Dirichlet
from mxnet.gluon.probability.distributions.distribution import Distribution
from mxnet.gluon.probability.distributions.divergence import empirical_kl, kl_divergence, register_kl
from mxnet.gluon.probability.distributions.exp_family import ExponentialFamily
from mxnet.gluon.probability.distributions.exponential import Exponential
from mxnet.gluon.probability.distributions.fishersnedecor import FisherSnedecor
from mxnet.gluon.probability.distributions.gamma import Gamma
from mxnet.gluon.probability.distributions.geometric import Geometric
from mxnet.gluon.probability.distributions.gumbel import Gumbel
from mxnet.gluon.probability.distributions.half_cauchy import HalfCauchy
from mxnet.gluon.probability.distributions.half_normal import HalfNormal
from mxnet.gluon.probability.distributions.independent import Independent
from mxnet.gluon.probability.distributions.laplace import Laplace
from mxnet.gluon.probability.distributions.multinomial import Multinomial
from mxnet.gluon.probability.distributions.multivariate_normal import MultivariateNormal
from mxnet.gluon.probability.distributions.negative_binomial import NegativeBinomial
from mxnet.gluon.probability.distributions.normal import Normal
from mxnet.gluon.probability.distributions.one_hot_categorical import OneHotCategorical
from mxnet.gluon.probability.distributions.pareto import Pareto
from mxnet.gluon.probability.distributions.poisson import Poisson
from mxnet.gluon.probability.distributions.relaxed_bernoulli import RelaxedBernoulli
from mxnet.gluon.probability.distributions.relaxed_one_hot_categorical import RelaxedOneHotCategorical
from mxnet.gluon.probability.distributions.studentT import StudentT
from mxnet.gluon.probability.distributions.transformed_distribution import TransformedDistribution
from mxnet.gluon.probability.distributions.uniform import Uniform
from mxnet.gluon.probability.distributions.utils import (
    cached_property,
    constraint_check,
    digamma,
    erf,
    erfinv,
    gammaln,
    logit2prob,
    prob2logit,
    sample_n_shape_converter,
)
from mxnet.gluon.probability.distributions.weibull import Weibull

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Laplace",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "Weibull",
    "cached_property",
    "constraint_check",
    "digamma",
    "empirical_kl",
    "erf",
    "erfinv",
    "gammaln",
    "kl_divergence",
    "logit2prob",
    "prob2logit",
    "register_kl",
    "sample_n_shape_converter",
    "constraint",
    "utils",
]
