"""Giving arrays of a file or a dictionary to the parameters of a block."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mxnet.gluon._failure import listed
from mxnet.gluon.parameter import DeviceLike
from mxnet.numpy import ndarray

if TYPE_CHECKING:
    from mxnet.gluon.block import Block

__all__ = ["LoadOptions", "load_parameters"]


class LoadOptions(NamedTuple):
    """Arguments of `Block.load_parameters` and `Block.load_dict`, which describe them."""

    device: DeviceLike | None
    allow_missing: bool
    ignore_extra: bool
    cast_dtype: bool
    dtype_source: str


def load_parameters(block: Block, arrays: Mapping[str, ndarray], options: LoadOptions, source: str) -> None:
    """Overwrite the parameters of a block. Everything is checked before the first one changes.

    Parameters
    ----------
    block : Block
    arrays : mapping of str to ndarray
        By names of parameters in the block.
    options : LoadOptions
    source : str
        Where the arrays are from, for errors.

    Raises
    ------
    ValueError
        If parameters are missing or extra, or a shape differs.
    TypeError
        If a dtype differs and the options do not allow to convert.

    Notes
    -----
    MXNet 2.0 beta stored one vector ``rnn_param`` for all parameters of a recurrent layer; it is cut into these.
    """
    if options.dtype_source not in ("current", "saved"):
        raise ValueError(f"`dtype_source` must be 'current' or 'saved', found {options.dtype_source!r}")
    if any(name.split(".")[-1] == _PACKED for name in arrays):
        arrays = _unpacked(block, dict(arrays), "", source)
    params = block.collect_params()
    names: dict[int, list[str]] = {}
    for name, parameter in params.items():
        names.setdefault(id(parameter), []).append(name)
    # One stored name is enough for a parameter that is used in several places.
    missing = [group[0] for group in names.values() if not any(name in arrays for name in group)]
    extra = [name for name in arrays if name not in params]
    if missing and not options.allow_missing:
        advice = _advice(missing, arrays.keys(), params.keys()) or "; `allow_missing=True` leaves them as they are"
        raise ValueError(f"{source} lacks {listed(missing)}{advice}")
    if extra and not options.ignore_extra:
        raise ValueError(
            f"{source} has {listed(extra)}, which {type(block).__name__} has not; `ignore_extra=True` passes over them"
        )
    wanted = [(params[name], name, array) for name, array in arrays.items() if name in params]
    for parameter, name, array in wanted:
        parameter._check_loadable(array, options.cast_dtype, f"{source}, {name!r}")
    for parameter, _, array in wanted:
        parameter._load_init(array, options.device, options.dtype_source)


def _advice(missing: list[str], given: KeysView[str], params: KeysView[str]) -> str:
    """A hint if the arrays are those of a part of the block, or of a block that has this one as a part."""
    for name in given:
        part = _beginning(missing[0], name)
        if part and {part + own for own in given} <= params:
            return f"\n  hint: its names are those of the block's `{part[:-1]}`, which can load it"
        whole = _beginning(name, missing[0])
        if whole and {whole + own for own in missing} <= given:
            return f"\n  hint: its names begin with {whole!r}; give the arrays without that to `load_dict`"
    return ""


def _beginning(longer: str, name: str) -> str:
    """The path before `name` in a longer name, with the dot; empty if there is none."""
    return longer.removesuffix(name) if longer.endswith(f".{name}") else ""


_PACKED = "rnn_param"


def _unpacked(block: Block, arrays: dict[str, ndarray], prefix: str, source: str) -> dict[str, ndarray]:
    """The arrays with the vectors of recurrent layers in and below a block cut into their parameters."""
    cut = getattr(block, "_cut_packed", None)
    packed = prefix + _PACKED
    if cut is not None and packed in arrays:
        try:
            parts = cut(arrays.pop(packed))
        except ValueError as error:
            raise ValueError(f"{source}, {packed!r}: {error}") from error
        arrays |= {prefix + name: part for name, part in parts.items()}
    for name, child in block._children.items():
        arrays = _unpacked(child, arrays, f"{prefix}{name}.", source)
    return arrays
