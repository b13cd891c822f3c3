"""Tests of blocks run twice: operator by operator, and with every hybrid block compiled at its first call.

The expected values are the same, so results are equal. What runs once stands in `ONCE`, with the reason.
"""

import pytest

from mxnet import _core
from mxnet.gluon import HybridBlock

# Files whose tests call blocks.
TWICE = {
    "test_against_references",
    "test_bbox_transforms",
    "test_block",
    "test_block_features",
    "test_checkpoint",
    "test_conv_rnn",
    "test_data_vision_files",
    "test_demo",
    "test_estimator",
    "test_estimator_tasks",
    "test_layer_options",
    "test_layers",
    "test_loss",
    "test_mended",
    "test_model_zoo",
    "test_model_zoo_text",
    "test_older_names",
    "test_parameter",
    "test_rnn",
    "test_stale_gradients",
    "test_stochastic_block",
    "test_trainer",
    "test_transformation",
}

# Tests that run operator by operator only.
ONCE = {
    "test_arrays_of_numpy_are_named_when_a_call_fails": "the graph's block is named, not the one inside of it",
    "test_networks_have_the_published_number_of_parameters": "graphs do not run on arrays without values",
    "test_networks_have_the_published_number_of_trained_parameters": "graphs do not run on arrays without values",
    "test_print_summary_computes_nothing_and_counts": "graphs do not run on arrays without values",
}


def pytest_generate_tests(metafunc):
    name = metafunc.module.__name__.rpartition(".")[2]
    if name in TWICE and metafunc.function.__name__ not in ONCE:
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
