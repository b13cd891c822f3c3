"""Ranges whose bounds need all 64 bits, or more."""

import pytest

from both import both
from mxnet import np


@pytest.mark.parametrize(
    "arguments",
    [
        "2**63, 2**63 + 2",
        "10**19, 10**19 + 3",
        "2**63 - 1, 2**63 + 2",
        "0, 2**63, 2**61",
        "0., 5, 0.5, dtype='int64'",
        "-3, 3, 0.5, dtype='int64'",
        "0, 10, 2.9, dtype='uint8'",
        "2**63, 2**63 + 4096, 2048., dtype='uint64'",
        "2**63 + 2, 2**63, -1",
        "2**63, 2**63 - 2",
        "2**63, 2**63 + 2, 1.0",
        "2**63, 1.0",
        "0, 10, 2**63",
        "-2**63, -2**63 + 2",
        "2**62, 2**63 - 1, 2**61",
        "2**63, 2**63 + 2, dtype='uint64'",
        "2**63 - 1, 2**63 + 2, dtype='uint64'",
        "2**63 + 5, 2**63, -2, dtype='uint64'",
        "2**64 - 3, 2**64 - 1, dtype='uint64'",
        "2**63, 2**63 + 2, dtype='int64'",
        "2**63, 2**63 + 2, dtype='float64'",
        "300, 303, dtype='uint8'",
        "300, 300, dtype='uint8'",
        "-1, 2, dtype='uint8'",
        "250, 260, dtype='uint8'",
        "0, 300, 100, dtype='uint8'",
        "0, 600, 300, dtype='uint8'",
        "5, 1, -1, dtype='uint8'",
        "300., 303., dtype='uint8'",
        "True",
        "2, 5, None",
    ],
)
def test_ranges_are_numpys(arguments):
    both(f"np.arange({arguments})", rtol=1e-15)


@pytest.mark.parametrize(
    "arguments", ["2**64, 2**64 + 3", "0, 2**64, 2**62", "-2**70, -2**70 + 2", "2**70", "0, 2**2000"]
)
def test_bounds_beyond_64_bits_are_an_error(arguments):
    # NumPy makes arrays of objects.
    with pytest.raises(OverflowError, match="64 bits"):
        eval(f"np.arange({arguments})", {"np": np})


def test_the_default_mode_gives_its_own_float():
    assert np.arange(2**63, 2**63 + 2).dtype == "float32"
    assert np.arange(2**63, 2**63 + 2, dtype="uint64").tolist() == [2**63, 2**63 + 1]


def test_a_range_that_no_memory_holds_is_an_error():
    with pytest.raises((MemoryError, ValueError)):
        np.arange(2**63)
