"""What importing the package brings in, and what ships beside its code."""

import subprocess
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import numpy
import pytest

import mxnet

ROOT = Path(__file__).parents[2]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout


def test_import_brings_in_numpy_and_nothing_else():
    code = "import sys; old = set(sys.modules); import mxnet; print(*{m.split('.')[0] for m in set(sys.modules) - old})"
    new = set(run_python(code).split())
    assert "mxnet" in new
    assert new - set(sys.stdlib_module_names) <= {"mxnet", "numpy"}


def test_only_numpy_is_required():
    required = [line for line in metadata.requires("mxnet") if "extra ==" not in line]
    assert required == ["numpy>=2.0"]


def test_version_is_the_one_of_the_workspace():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert mxnet.__version__ == version
    assert metadata.version("mxnet") == version


def test_interpreter_leaves_in_peace_with_work_in_flight():
    code = "import mxnet as mx; x = mx.np.ones((1000, 1000)); y = [mx.np.matmul(x, x) for _ in range(3)]; print('end')"
    assert run_python(code) == "end\n"


@pytest.mark.parametrize("name", ["py.typed", "gluon/data/vision/digits.LICENSE.txt"])
def test_file_ships_with_the_package(name):
    assert resources.files("mxnet").joinpath(name).is_file()


def test_digits_are_the_ones_the_notice_speaks_of():
    with resources.files("mxnet").joinpath("gluon/data/vision/digits.npz").open("rb") as file:
        digits = numpy.load(file, allow_pickle=False)
        images, labels = digits["images"], digits["labels"]
    assert (images.shape, images.dtype, images.min(), images.max()) == ((1797, 8, 8), numpy.uint8, 0, 16)
    assert (labels.shape, labels.dtype) == ((1797,), numpy.uint8)
    # Class counts as the data set's description gives them for its test part.
    assert numpy.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert images[0].tolist()[0] == [0, 0, 5, 13, 9, 1, 0, 0]
