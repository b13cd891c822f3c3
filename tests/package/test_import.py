"""What importing the package does and does not do."""

import subprocess
import sys

import pytest

import mxnet as mx


def test_import_loads_neither_networks_nor_the_core():
    code = "import sys, mxnet; print(sorted(m for m in sys.modules if m.startswith('mxnet.')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_every_public_name_exists():
    for name in mx.__all__:
        assert getattr(mx, name) is not None
    assert set(mx.__all__) <= set(dir(mx))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'nd'"):
        mx.nd


def test_version_is_that_of_the_core():
    assert mx.__version__.split(".")[0] == "2"
