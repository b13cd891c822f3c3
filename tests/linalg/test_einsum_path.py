"""Orders of contraction: what they cost, and that they all give the same."""

import numpy as onp
import pytest

import mxnet as mx

np = mx.np
CASES = ["ij,jk,kl->il", "ea,fb,abcd,gc,hd->efgh", "abc,cd,bd->a", "ij,ij->", "...a,ab,bc->...c", "ii,jk,kj->i"]


def operands(subscripts):
    rng = onp.random.default_rng(0)
    sizes = {letter: 2 + i % 3 for i, letter in enumerate("abcdefghijkl")}
    terms = subscripts.split("->")[0].split(",")
    return [rng.standard_normal([4] * ("." in term) + [sizes[x] for x in term.strip(".")]) for term in terms]


def rounding(subscripts, arrays):
    """Bound of what float32 loses: each operand, product and sum rounds once, relative to the absolute values."""
    terms, _, result = subscripts.partition("->")
    summed = {
        x: n for term, a in zip(terms.split(","), arrays, strict=True) for x, n in zip(term, a.shape, strict=False)
    }
    count = onp.prod([n for x, n in summed.items() if x not in result + "."])
    roundings = 2 * len(arrays) + count
    return roundings * 2.0**-24 * onp.einsum(subscripts, *map(onp.abs, arrays)).max()


@pytest.mark.parametrize("subscripts", CASES)
@pytest.mark.parametrize("optimize", [False, "greedy", "optimal", ("optimal", 30)])
def test_path_is_numpys_and_contracts_to_the_same(subscripts, optimize):
    arrays = operands(subscripts)
    path, report = np.einsum_path(subscripts, *arrays, optimize=optimize)
    assert path == onp.einsum_path(subscripts, *arrays, optimize=optimize)[0]
    assert "Optimized FLOP count" in report
    expected = onp.einsum(subscripts, *arrays)
    for way in (path, optimize):
        found = np.einsum(subscripts, *map(np.array, arrays), optimize=way).asnumpy()
        onp.testing.assert_allclose(found, expected, rtol=0, atol=rounding(subscripts, arrays))


def test_single_and_triple_steps_are_taken():
    a, b, c = operands("ab,bc,cd->ad")
    path = ["einsum_path", (1,), (0, 1, 2)]
    found = np.einsum("ab,bc,cd->ad", a, b, c, optimize=path)
    onp.testing.assert_allclose(found.asnumpy(), a @ b @ c, rtol=0, atol=rounding("ab,bc,cd->ad", [a, b, c]))


@pytest.mark.parametrize(
    ("path", "match"),
    [(["einsum_path", (0, 1)], "leaves 2 operands"), (["einsum_path", (0, 3), (0, 1)], "there are 3 operands left")],
)
def test_a_path_that_does_not_fit_is_refused(path, match):
    for function in (np.einsum, np.einsum_path):
        with pytest.raises(RuntimeError, match=match):
            function("ab,bc,cd->ad", *operands("ab,bc,cd->ad"), optimize=path)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (("ij,jk", onp.ones((2, 2))), ValueError, "name 2 operands, 1 are given"),
        (("ij->k", onp.ones((2, 2))), ValueError, "names 'k' 1 times"),
        (("ii", onp.ones((2, 3))), ValueError, "'i' is 2 and 3 in operand 0"),
        (("ijk", onp.ones((2, 3))), ValueError, "an operand has 2 axes, 'ijk' names 3"),
    ],
)
def test_subscripts_that_do_not_fit_are_refused(arguments, error, match):
    with pytest.raises(error, match=match):
        np.einsum_path(*arguments)


def test_order_dtype_and_casting_of_einsum():
    a, b = np.ones((2, 3), dtype="float32"), np.ones((3, 4), dtype="float32")
    assert np.einsum("ij,jk->ik", a, b, order="F").flags.f_contiguous
    assert np.einsum("ij->ji", a, order="C").flags.c_contiguous
    assert np.einsum("ij,jk->ik", a, b, dtype="float64").dtype == onp.float64
    with pytest.raises(TypeError, match="from float32 to int32 under casting rule 'safe'"):
        np.einsum("ij,jk->ik", a, b, dtype="int32")
    assert np.einsum("ij,jk->ik", a, b, dtype="int32", casting="unsafe").tolist() == [[3] * 4] * 2
    with pytest.raises(ValueError, match="`order` must be one of"):
        np.einsum("ij", a, order="W")
