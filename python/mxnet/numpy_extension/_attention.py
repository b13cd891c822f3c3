"""Attention products on interleaved projections, in which query, key and value of each head are adjacent."""

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
    "sldwin_atten_mask_like",
]

_np = _core.namespaces["numpy"]
_matmul = _np["matmul"]


def _parts(name: str, argument: str, x: ndarray, heads: int, count: int) -> list[ndarray]:
    """(t, n, heads * count * size) -> `count` arrays (n * heads, t, size)."""
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
    """(n * heads, t, s) @ (n * heads, s, size) -> (t, n, heads * size)."""
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


def sldwin_atten_mask_like(
    score: ArrayLike, dilation: ArrayLike, valid_length: ArrayLike, w: int, symmetric: bool
) -> ndarray:
    """Which scores of `sldwin_atten_score` belong to a query and a key that are there.

    Parameters
    ----------
    score : array_like, shape (n, length, heads, 2 w + 1), or (n, length, heads, w + 1) if not symmetric
        Only shape and dtype count.
    dilation : array_like of int, shape (heads,)
        Distance of neighbours in the window, for each head.
    valid_length : array_like of int, shape (n,)
        How many rows of each sequence count.
    w : int
        Number of keys before a query in its window.
    symmetric : bool
        Whether the window has as many keys after the query.

    Returns
    -------
    ndarray
        1 or 0, of the shape and dtype of `score`.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> npx.sldwin_atten_mask_like(np.ones((1, 3, 1, 3)), np.array([1]), np.array([2]), w=1, symmetric=True)[0, :, 0]
    array([[0., 1., 1.],
           [1., 1., 0.],
           [0., 0., 0.]])
    """
    name = "sldwin_atten_mask_like"
    scores, distances, lengths = asarray(score), asarray(dilation), asarray(valid_length)
    width = 2 * w + 1 if symmetric else w + 1
    if scores.ndim != 4 or scores.shape[3] != width:
        raise ValueError(f"{name}: `score` must be (n, length, heads, {width}), found {scores.shape}")
    batch, length, heads = scores.shape[:3]
    if distances.shape != (heads,) or lengths.shape != (batch,):
        raise ValueError(
            f"{name}: `dilation` must be ({heads},) and `valid_length` ({batch},), found {distances.shape} and "
            f"{lengths.shape}"
        )
    row = _np["arange"](length, device=scores.device).reshape(-1, 1, 1)
    away = distances.reshape(-1, 1) * (_np["arange"](width, device=scores.device) - w)
    key, end = row + away, lengths.reshape(-1, 1, 1, 1)
    mask: ndarray = ((key >= 0) & (key < end) & (row < end)).astype(scores.dtype)
    return mask
