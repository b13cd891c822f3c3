"""Settings that all tests share, and what doctests of the package may use without importing it."""

import os

import hypothesis
import pytest

# The same examples in every run: a failure seen once is seen again. A slow machine is no failure.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="session")
def _general_path():
    """With MXNET_TESTS_GENERAL=1 no plan is kept, and elements are read and written by operators."""
    if os.environ.get("MXNET_TESTS_GENERAL") == "1":
        from mxnet import _core

        _core.set_plan_cache(False)
        _core.set_element_path(False)


@pytest.fixture(autouse=True)
def _names_in_doctests(request):
    if isinstance(request.node, pytest.DoctestItem):
        import mxnet

        names = {"mx": mxnet, "np": mxnet.np, "npx": mxnet.npx, "autograd": mxnet.autograd}
        request.getfixturevalue("doctest_namespace").update(names)
