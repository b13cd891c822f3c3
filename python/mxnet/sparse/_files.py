"""Sparse arrays in files: SciPy's npz archives, and safetensors files of the parts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from mxnet import _core, error
from mxnet._core import ndarray
from mxnet.numpy._files import replace_file
from mxnet.sparse._bsr import bsr_array
from mxnet.sparse._compressed import csc_array, csr_array
from mxnet.sparse._coo import coo_array
from mxnet.sparse._row_sparse import row_sparse_array

__all__ = ["load", "load_npz", "save", "save_npz"]

_CLASSES: dict[str, Any] = {
    "csr": csr_array,
    "csc": csc_array,
    "bsr": bsr_array,
    "coo": coo_array,
    "row_sparse": row_sparse_array,
}


def parts_of(x: Any) -> dict[str, ndarray]:
    """The arrays that a sparse array consists of, by name."""
    if x.format == "coo":
        return {"data": x.data, **{f"coords_{i}": axis for i, axis in enumerate(x.coords)}}
    names = ("data", "indices") if x.format == "row_sparse" else ("data", "indices", "indptr")
    return {name: getattr(x, name) for name in names}


def from_parts(format: str, parts: Mapping[str, Any], shape: tuple[int, ...]) -> Any:
    """The sparse array with these parts, which are checked."""
    if format not in _CLASSES:
        raise error.FileFormatError(f"there is no sparse format {format!r}")
    if format == "coo":
        coords = tuple(parts[f"coords_{i}"] for i in range(len(shape)))
        return coo_array((parts["data"], coords), shape=shape)
    names = ("data", "indices") if format == "row_sparse" else ("data", "indices", "indptr")
    return _CLASSES[format](tuple(parts[name] for name in names), shape=shape)


def save_npz(file: str | os.PathLike[str], matrix: Any, compressed: bool = True) -> None:
    """Saves a matrix as an archive that SciPy's `load_npz` reads, too.

    Parameters
    ----------
    file : path
        Where to; '.npz' is added if it is missing.
    matrix : csr_array, csc_array, bsr_array or coo_array of two axes
        The matrix.
    compressed : bool
        Whether the archive is compressed.

    Raises
    ------
    mxnet.error.UnsupportedError
        For another format: `save` takes it.
    """
    import numpy

    if matrix.format not in ("csr", "csc", "bsr", "coo") or matrix.ndim != 2:
        raise error.UnsupportedError(
            f"save_npz: SciPy has no archive of a {type(matrix).__name__} of {matrix.ndim} axes: use `mx.sparse.save`"
        )
    parts = {name: part.asnumpy() for name, part in parts_of(matrix).items()}
    if matrix.format == "coo":
        parts = {"data": parts["data"], "row": parts["coords_0"], "col": parts["coords_1"]}
    writer = numpy.savez_compressed if compressed else numpy.savez
    arrays: dict[str, Any] = {
        **parts,
        "format": numpy.array(matrix.format.encode("ascii")),
        "shape": numpy.array(matrix.shape),
        "_is_array": numpy.array(True),
    }
    path = os.fspath(file)
    replace_file(path if path.endswith(".npz") else path + ".npz", lambda opened: writer(opened, **arrays))


def load_npz(file: str | os.PathLike[str]) -> Any:
    """Reads a matrix that `save_npz` of this library or of SciPy has written.

    Parameters
    ----------
    file : path
        The archive.

    Returns
    -------
    csr_array, csc_array, bsr_array or coo_array

    Raises
    ------
    mxnet.error.FileFormatError
        If the archive holds no sparse matrix of a known format.
    mxnet.error.ValueError, mxnet.error.IndexError, mxnet.error.ShapeError
        If its index arrays are wrong.
    """
    import numpy

    _core.check_file(file)
    with numpy.load(file, allow_pickle=False) as archive:
        if "format" not in archive:
            raise error.FileFormatError(f"{os.fspath(file)} holds no sparse matrix")
        kind = archive["format"].item()
        kind = kind.decode("ascii") if isinstance(kind, bytes) else str(kind)
        shape = tuple(int(n) for n in archive["shape"])
        parts = {name: archive[name] for name in archive.files if name not in ("format", "shape", "_is_array")}
    if kind == "coo" and "row" in parts:
        parts = {"data": parts["data"], "coords_0": parts["row"], "coords_1": parts["col"]}
    return from_parts(kind, parts, shape)


def save(file: str | os.PathLike[str], data: Mapping[str, Any]) -> None:
    """Saves named arrays, sparse and dense ones, in a safetensors file, whole or not at all.

    Parameters
    ----------
    file : path
        Where to.
    data : mapping of str to arrays
        The arrays.

    Raises
    ------
    mxnet.error.IOError, OSError
        If the file cannot be written.
    """
    _core.save_safetensors(os.fspath(file), *parts(data))


def parts(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Named arrays, sparse ones as their parts, and the metadata that describes these."""
    arrays: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    for name, x in data.items():
        if hasattr(x, "_with_data"):
            metadata[f"sparse:{name}"] = f"{x.format} {' '.join(map(str, x.shape))}"
            arrays.update({f"{name}.{part}": array for part, array in parts_of(x).items()})
        else:
            arrays[name] = x
    return arrays, metadata


def load(file: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the named arrays of a file that `save` has written.

    Parameters
    ----------
    file : path
        The file.

    Returns
    -------
    dict of str to arrays

    Raises
    ------
    mxnet.error.IOError, OSError
        If the file is truncated or foreign, or cannot be read.
    mxnet.error.FileFormatError
        If a part of a sparse array is missing.
    """
    return joined(file, *_core.load_safetensors(os.fspath(file)))


def joined(
    file: str | os.PathLike[str], arrays: Mapping[str, ndarray], metadata: Mapping[str, str] | None
) -> dict[str, Any]:
    """Named arrays of a file, parts of sparse ones put together."""
    found: dict[str, Any] = dict(arrays)
    for key, description in (metadata or {}).items():
        if not key.startswith("sparse:"):
            continue
        name = key.removeprefix("sparse:")
        kind, *sizes = description.split(" ")
        prefix = f"{name}."
        parts = {key.removeprefix(prefix): found.pop(key) for key in list(found) if key.startswith(prefix)}
        try:
            found[name] = from_parts(kind, parts, tuple(int(n) for n in sizes))
        except KeyError as missing:
            raise error.FileFormatError(f"{os.fspath(file)}: part {missing} of `{name}` is missing") from missing
    return found
