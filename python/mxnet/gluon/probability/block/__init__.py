"""Blocks that gather losses while they run."""

from mxnet.gluon.probability.block.stochastic_block import StochasticBlock, StochasticSequential

__all__ = ["StochasticBlock", "StochasticSequential"]
