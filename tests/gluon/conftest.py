"""Tests of blocks run twice: operator by operator, and with every hybrid block compiled at its first call.

The expected values are the same, so results are equal. `ONCE_FILES` and `ONCE` say what runs once, and why.
"""

import pytest

from mxnet import _core
from mxnet.gluon import HybridBlock

# Files whose tests run once.
ONCE_FILES = {
    "test_eager_and_compiled": "compares both ways itself",
    "test_constraint": "calls no blocks",
    "test_contrib_text": "calls no blocks",
    "test_data_workers": "worker processes run blocks as the program left them",
    "test_divergence": "calls no blocks",
    "test_downloads": "calls no blocks",
    "test_hybridize": "compares both ways itself",
    "test_hybridized": "compares both ways itself",
    "test_metric": "calls no blocks; metrics compile their updates themselves",
    "test_multivariate": "calls no blocks",
    "test_univariate": "calls no blocks",
}

# Tests that run operator by operator only.
ONCE = {
    "test_row_sparse_gradients_are_checked_and_unscaled": "row-sparse gradients are not part of graphs",
    "test_arrays_of_numpy_are_named_when_a_call_fails": "the graph's block is named, not the one inside of it",
    "test_networks_have_the_published_number_of_parameters": "graphs do not run on arrays without values",
    "test_networks_have_the_published_number_of_trained_parameters": "graphs do not run on arrays without values",
    "test_print_summary_computes_nothing_and_counts": "graphs do not run on arrays without values",
}


def pytest_generate_tests(metafunc):
    name = metafunc.module.__name__.rpartition(".")[2]
    if name not in ONCE_FILES and metafunc.function.__name__ not in ONCE:
        metafunc.parametrize("execution", ["eager", "hybridized"], indirect=True)


@pytest.fixture(autouse=True)
def execution(request, monkeypatch):
    """How blocks run in this test."""
    way = getattr(request, "param", "eager")
    if way == "hybridized":
        run = HybridBlock._run

        def compiled_run(self, args, kwargs):
            # Blocks inside of a trace are part of the graph of the block around them.
            if self._compiled is None and not _core.trace_is_active():
                self.hybridize()
            return run(self, args, kwargs)

        monkeypatch.setattr(HybridBlock, "_run", compiled_run)
    return way
