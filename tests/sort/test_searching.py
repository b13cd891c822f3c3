"""Where Python numbers go in arrays that cannot hold them."""

import numpy as onp
import pytest

from both import both
from mxnet import np

ARRAYS = {
    "uint8": [0, 1, 200, 255],
    "int8": [-128, -1, 0, 127],
    "int64": [-(2**63), 1, 2**62, 2**62 + 2],
    "uint64": [0, 2**63, 2**63 + 2, 2**64 - 1],
    "float16": [-onp.inf, 1, 2, onp.inf],
    "float32": [1, 1.5, 2, 3, onp.nan],
    "float64": [-1e300, 0, 2**53, 1e300],
    "bool": [False, True, True],
}
NUMBERS = [
    "-1",
    "0",
    "1",
    "2",
    "300",
    "-300",
    "1.5",
    "-0.5",
    "1.0000000001",
    "0.9999999999",
    "2**62 + 1",
    "2**63",
    "2**63 + 1",
]
NUMBERS += ["2**70", "-2**70", "1e30", "-1e30", "inf", "-inf", "nan", "True", "1j", "65519", "65520"]


@pytest.mark.parametrize("dtype", ARRAYS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_numbers_outside_of_and_between_the_values_have_their_place(dtype, side):
    a = onp.array(ARRAYS[dtype], dtype)
    for number in NUMBERS:
        if "2**70" in number and dtype == "float32":
            continue  # NumPy compares objects, which NaN disturbs
        both(f"np.searchsorted(a, {number}, side='{side}')", a=a)
        both(f"a.searchsorted({number}, '{side}')", a=a)
        if number != "1j" and not number.startswith(("2**70", "-2**70")) and not onp.isnan(a.astype(float)).any():
            both(f"np.digitize({number}, a, right={side == 'left'})", a=a)


def test_lists_and_sorters_too():
    both("np.searchsorted([1, 2], 2**63)")
    both("np.searchsorted([1., 2.], 2**70)")
    both("np.searchsorted([3, 1, 2], 2.5, sorter=[1, 2, 0])")
    both("np.searchsorted(a, [1.0000000001])", a=onp.array([1, 2], "float32"))


def test_the_default_float_does_not_round_the_number():
    assert np.searchsorted(np.array([1.0, 2.0]), 1.0000000001).item() == 1
    assert np.searchsorted(np.array([2**24, 2**24 + 1]), 2**24 + 0.5).item() == 1


def test_a_float_far_out_is_compared_exactly():
    # NumPy rounds the array to float64 first and answers 1 for the right side.
    assert np.searchsorted(np.array([2**53 + 1]), float(2**53)).item() == 0
    assert np.searchsorted(np.array([2**53 + 1]), float(2**53), side="right").item() == 0
