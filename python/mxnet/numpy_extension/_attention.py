"""Products of attention on interleaved projections: for each head its query, key and value lie side by side."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from mxnet import _core
from mxnet._core import asarray, ndarray

__all__ = [
    "interleaved_matmul_encdec_qk",
    "interleaved_matmul_encdec_valatt",
    "interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt",
]

_matmul = _core.namespaces["numpy"]["matmul"]


def _parts(name: str, argument: str, x: ndarray, heads: int, count: int) -> list[ndarray]:
    """(t, n, heads * count * size) to `count` arrays (n * heads, t, size)."""
    if heads < 1:
        raise ValueError(f"{name}: `heads` must be positive, found {heads}")
    if x.ndim != 3 or x.shape[2] % (heads * count):
        raise ValueError(
            f"{name}: `{argument}` must be (t, n, {count} * heads * size) with {heads} heads, found shape {x.shape}"
        )
    length, batch, width = x.shape
    size = width // (heads * count)
    apart = x.reshape(length, batch * heads, count, size)
    return [apart[:, :, i].transpose(1, 0, 2) for i in range(count)]


def _scores(query: ndarray, key: ndarray) -> ndarray:
    scores: ndarray = _matmul(query * (1 / math.sqrt(query.shape[2])), key.transpose(0, 2, 1))
    return scores


def _mixed(name: str, attention: ndarray, value: ndarray, heads: int) -> ndarray:
    """(n * heads, t, s) times (n * heads, s, size) to (t, n, heads * size)."""
    if attention.ndim != 3 or attention.shape[0] != value.shape[0] or attention.shape[2] != value.shape[1]:
        raise ValueError(
            f"{name}: `attention` must be ({value.shape[0]}, t, {value.shape[1]}), found shape {attention.shape}"
        )
    mixed: ndarray = _matmul(attention, value).transpose(1, 0, 2)
    return mixed.reshape(mixed.shape[0], mixed.shape[1] // heads, -1)


def interleaved_matmul_selfatt_qk(queries_keys_values: ArrayLike, heads: int) -> ndarray:
    """Products of queries and keys of self-attention.

    Parameters
    ----------
    queries_keys_values : array_like, shape (t, n, heads * 3 * size)
        For each head query, key and value side by side.
    heads : int

    Returns
    -------
    ndarray, shape (n * heads, t, t)
        Divided by the root of `size`.

    Raises
    ------
    ValueError
        If the shape does not fit.

    Examples
    --------
    >>> npx.interleaved_matmul_selfatt_qk(np.ones((2, 1, 12)), heads=2).shape
    (2, 2, 2)
    """
    x = asarray(queries_keys_values)
    query, key, _ = _parts("interleaved_matmul_selfatt_qk", "queries_keys_values", x, heads, 3)
    return _scores(query, key)


def interleaved_matmul_selfatt_valatt(queries_keys_values: ArrayLike, attention: ArrayLike, heads: int) -> ndarray:
    """Sums of the values of self-attention with given weights.

    Parameters
    ----------
    queries_keys_values : array_like, shape (t, n, heads * 3 * size)
        For each head query, key and value side by side.
    attention : array_like, shape (n * heads, t, t)
    heads : int

    Returns
    -------
    ndarray, shape (t, n, heads * size)

    Raises
    ------
    ValueError
        If a shape does not fit.

    Examples
    --------
    >>> npx.interleaved_matmul_selfatt_valatt(np.ones((2, 1, 12)), np.ones((2, 2, 2)), heads=2).shape
    (2, 1, 4)
    """
    name = "interleaved_matmul_selfatt_valatt"
    *_, value = _parts(name, "queries_keys_values", asarray(queries_keys_values), heads, 3)
    return _mixed(name, asarray(attention), value, heads)


def interleaved_matmul_encdec_qk(queries: ArrayLike, keys_values: ArrayLike, heads: int) -> ndarray:
    """Products of the queries of a decoder and the keys of an encoder.

    Parameters
    ----------
    queries : array_like, shape (t, n, heads * size)
    keys_values : array_like, shape (s, n, heads * 2 * size)
        For each head key and value side by side.
    heads : int

    Returns
    -------
    ndarray, shape (n * heads, t, s)
        Divided by the root of `size`.

    Raises
    ------
    ValueError
        If a shape does not fit.

    Examples
    --------
    >>> npx.interleaved_matmul_encdec_qk(np.ones((2, 1, 4)), np.ones((3, 1, 8)), heads=2).shape
    (2, 2, 3)
    """
    name = "interleaved_matmul_encdec_qk"
    (query,) = _parts(name, "queries", asarray(queries), heads, 1)
    key, _ = _parts(name, "keys_values", asarray(keys_values), heads, 2)
    if query.shape[0] != key.shape[0] or query.shape[2] != key.shape[2]:
        raise ValueError(
            f"{name}: `queries` and `keys_values` must have the same samples and sizes, found shapes "
            f"{asarray(queries).shape} and {asarray(keys_values).shape}"
        )
    return _scores(query, key)


def interleaved_matmul_encdec_valatt(keys_values: ArrayLike, attention: ArrayLike, heads: int) -> ndarray:
    """Sums of the values of an encoder with given weights.

    Parameters
    ----------
    keys_values : array_like, shape (s, n, heads * 2 * size)
        For each head key and value side by side.
    attention : array_like, shape (n * heads, t, s)
    heads : int

    Returns
    -------
    ndarray, shape (t, n, heads * size)

    Raises
    ------
    ValueError
        If a shape does not fit.

    Examples
    --------
    >>> npx.interleaved_matmul_encdec_valatt(np.ones((3, 1, 8)), np.ones((2, 2, 3)), heads=2).shape
    (2, 1, 4)
    """
    name = "interleaved_matmul_encdec_valatt"
    _, value = _parts(name, "keys_values", asarray(keys_values), heads, 2)
    return _mixed(name, asarray(attention), value, heads)
