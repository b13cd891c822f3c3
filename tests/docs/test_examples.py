"""The check of examples sees what is wrong, and lets rounding pass."""

import pytest

import docexamples


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("0.12345678", "0.12345679"),
        ("np.array([1.5, 2.0])", "array([1.5,   2. ])"),
        ("[1.0, 'a']", "[1.0, 'a']"),
    ],
)
def test_rounding_and_spaces_pass(source, shown):
    assert docexamples.failures(f">>> {source}\n{shown}\n", "example") == ""


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("1.0", "1.1"),
        ("[1, 2]", "[1, 3]"),
        ("[1.0, 2.0]", "[1.0]"),
        ("np.ones(2)", "array([1, 1])"),
        ("'a 1.0'", "'b 1.0'"),
        ("1 / 0", "1.0"),
    ],
)
def test_differences_fail(source, shown):
    assert docexamples.failures(f">>> {source}\n{shown}\n", "example") != ""
