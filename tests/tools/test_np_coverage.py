"""The table of the names of NumPy that `mx.np` has is complete and true."""

import pytest

import np_coverage


@pytest.fixture(scope="module")
def rows():
    return {row.name: row for members in np_coverage.rows().values() for row in members}


# Worked out by hand: whether there is a derivative that is not 0 everywhere.
GRADIENTS = {
    "yes": """exp power maximum clip where sort take cumsum var median quantile einsum tensordot pad interp trapezoid
        prod concatenate put linalg.inv linalg.svd linalg.eigh linalg.det linalg.norm linalg.lstsq linalg.qr fft.rfft
        fft.irfft random.normal random.gamma random.beta random.uniform ndarray.sum ndarray.reshape ufunc.reduce
        ufunc.outer random.Generator.normal""",
    "zero": "sign heaviside",
    "no": """argmax floor equal isnan bitwise_and count_nonzero searchsorted nonzero allclose histogram zeros_like
        random.poisson random.randint linalg.matrix_rank random.Generator.integers""",
}


@pytest.mark.parametrize(("answer", "name"), [(a, name) for a, names in GRADIENTS.items() for name in names.split()])
def test_gradients(rows, answer, name):
    assert rows[name].gradient == answer, rows[name].called


# Whether a call can do without values is a matter of its result's shape, or of an error that depends on values.
@pytest.mark.parametrize(
    "name", ["add", "matmul", "sort", "cumsum", "where", "fft.fft", "random.normal", "einsum", "reshape", "var"]
)
def test_traceable(rows, name):
    assert rows[name].traceable


@pytest.mark.parametrize(
    "name", ["nonzero", "unique", "compress", "allclose", "linalg.inv", "ndarray.item", "ndarray.tolist"]
)
def test_not_traceable(rows, name):
    assert not rows[name].traceable


def test_dtypes(rows):
    integers, floats = ("bool", "int8", "int64", "uint8"), ("float16", "bfloat16", "float32", "float64")
    complexes = ("complex64", "complex128")
    assert rows["add"].dtypes == integers + floats + complexes
    assert rows["subtract"].dtypes == (*integers[1:], *floats, *complexes)
    assert rows["bitwise_and"].dtypes == integers
    assert rows["floor"].dtypes == integers + floats
    assert rows["arctan2"].dtypes == integers + floats
    assert rows["linalg.inv"].dtypes == (*integers, "float32", "float64", *complexes)
    assert rows["random.dirichlet"].dtypes == integers + floats


def test_every_listed_call_is_accepted(rows):
    refused = [
        name
        for name, call in np_coverage.listed_calls().items()
        if call != "-" and name in rows and rows[name].there and not rows[name].called
    ]
    assert refused == []


def test_lines_of_the_file_name_something(rows):
    names = np_coverage.listed_calls()
    generators = {name.replace("random.Generator.", "random.") for name in rows}
    assert set(names) - set(rows) - generators == set()


def test_page_and_totals_agree():
    page = np_coverage.page("mark")
    assert page.count("| yes |") > 600
    assert np_coverage.totals().split(" (")[0] in page
