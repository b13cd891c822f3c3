"""Functions that switch mixed precision on, scale losses and convert blocks."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from mxnet import _core, autograd
from mxnet._autocast import checked
from mxnet.amp.loss_scaler import LossScaler, gradient_values
from mxnet.gluon import HybridBlock, Trainer
from mxnet.gluon.parameter import DeviceLike

__all__ = [
    "convert_hybrid_block",
    "init",
    "init_trainer",
    "list_fp32_ops",
    "list_lp16_fp32_ops",
    "list_lp16_ops",
    "list_widest_type_cast",
    "scale_loss",
    "unscale",
]

_BY_MARK = (
    "each operator's own mark decides; write `with mx.amp.autocast(None):` around calls that must not be cast, and "
    "`astype` where a dtype is wanted"
)


def _refuse(caller: str, remedy: str, **arguments: Any) -> None:
    """Raise ValueError for arguments that are given."""
    for name, value in arguments.items():
        if value:
            raise ValueError(f"{caller}: `{name}` is not supported: {remedy}")


def init(
    target_dtype: str | None = "float16",
    target_precision_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[Any] | None = None,
    fp32_ops: Sequence[str] | None = None,
    layout_optimization: bool = False,
) -> None:
    """Switch mixed precision on for all that this thread calls from now on.

    Parameters
    ----------
    target_dtype : {"float16", "bfloat16", None}
        What products and convolutions compute in. None switches mixed precision off again.
    target_precision_ops, conditional_fp32_ops, fp32_ops : None
        Lists of one's own are not supported: the operators' marks decide, see `list_lp16_ops` and `list_fp32_ops`.
    layout_optimization : bool
        Must be False: arrays keep their layout.

    Raises
    ------
    ValueError
        If `target_dtype` is another one, or an argument asks for what does not exist.

    See Also
    --------
    autocast : The same for a block of code.

    Examples
    --------
    >>> mx.amp.init("bfloat16")
    >>> np.dot(np.ones((2, 2)), np.ones((2, 2))).dtype.name
    'bfloat16'
    >>> mx.amp.init(None)
    """
    lists = {"target_precision_ops": target_precision_ops, "conditional_fp32_ops": conditional_fp32_ops}
    _refuse("init", _BY_MARK, **lists, fp32_ops=fp32_ops)
    _refuse("init", "make the layers with the layout that they shall have", layout_optimization=layout_optimization)
    _core.set_autocast(None if target_dtype is None else checked("init", target_dtype))


def _trainer(caller: str, given: Any) -> Trainer:
    if not isinstance(given, Trainer):
        raise TypeError(
            f"{caller}: a `gluon.Trainer` is needed, found {type(given).__name__}; an optimizer alone skips no step"
        )
    return given


def init_trainer(optimizer_or_trainer: Trainer, loss_scaler: LossScaler | None = None) -> None:
    """Have a trainer scale its losses by `scale_loss`, and skip steps whose gradients are not finite.

    Parameters
    ----------
    optimizer_or_trainer : Trainer
    loss_scaler : LossScaler, optional
        By default a new one.

    Raises
    ------
    TypeError
        If it is no trainer.

    Notes
    -----
    For float16. Gradients of bfloat16 have the range of float32 and need no factor, nor this function. A step reads
    whether the gradients are finite, so it cannot be part of a compiled function.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(1, in_units=1)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    >>> mx.amp.init_trainer(trainer, mx.amp.LossScaler(init_scale=256.0))
    """
    _trainer("init_trainer", optimizer_or_trainer)._loss_scaler = loss_scaler or LossScaler()


def _scaler_of(caller: str, given: Any) -> tuple[Trainer, LossScaler]:
    trainer = _trainer(caller, given)
    if trainer._loss_scaler is None:
        raise RuntimeError(f"{caller}: the trainer has no loss scaler; call `mx.amp.init_trainer(trainer)` before")
    return trainer, trainer._loss_scaler


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Trainer) -> Iterator[Any]:
    """Multiply a loss, or each of a list, by the factor of the trainer, whose next step divides the gradients by it.

    Parameters
    ----------
    loss : ndarray, or list or tuple of ndarray
    optimizer_or_trainer : Trainer
        See `init_trainer`.

    Yields
    ------
    ndarray or list of ndarray
        What `backward` is called for.

    Raises
    ------
    TypeError
        If it is no trainer.
    RuntimeError
        If `init_trainer` was not called.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize(mx.init.One())
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    >>> mx.amp.init_trainer(trainer, mx.amp.LossScaler(init_scale=1024.0))
    >>> with mx.autograd.record(), mx.amp.autocast():
    ...     loss = net(np.ones((1, 2))).sum()
    ...     with mx.amp.scale_loss(loss, trainer) as scaled:
    ...         mx.autograd.backward(scaled)
    >>> net.weight.grad()
    array([[1024., 1024.]])
    >>> trainer.step(1)
    >>> net.weight.data()
    array([[0.5, 0.5]])
    """
    trainer, scaler = _scaler_of("scale_loss", optimizer_or_trainer)
    scale = scaler.loss_scale
    trainer._gradient_scale = scale
    # In float32: the factor is beyond the range of float16.
    if isinstance(loss, list | tuple):
        yield [part.astype("float32") * scale for part in loss]
    else:
        yield loss.astype("float32") * scale


def unscale(optimizer_or_trainer: Trainer) -> None:
    """Divide the gradients by the factor now, to clip or read them before the step.

    Parameters
    ----------
    optimizer_or_trainer : Trainer
        See `init_trainer`.

    Raises
    ------
    TypeError
        If it is no trainer.
    RuntimeError
        If `init_trainer` was not called.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    >>> mx.amp.init_trainer(trainer)
    >>> with mx.autograd.record():
    ...     loss = net(np.ones((1, 2))).sum()
    ...     with mx.amp.scale_loss(loss, trainer) as scaled:
    ...         mx.autograd.backward(scaled)
    >>> mx.amp.unscale(trainer)
    >>> net.weight.grad()
    array([[1., 1.]])
    """
    trainer, _ = _scaler_of("unscale", optimizer_or_trainer)
    with autograd.pause():
        for values in gradient_values(trainer._params):
            values /= trainer._gradient_scale
    trainer._gradient_scale = 1.0


def convert_hybrid_block(
    block: HybridBlock,
    target_dtype: str = "float16",
    target_dtype_ops: Sequence[str] | None = None,
    fp32_ops: Sequence[str] | None = None,
    conditional_fp32_ops: Sequence[Any] | None = None,
    excluded_sym_names: Sequence[str] | None = None,
    device: DeviceLike | None = None,
    cast_optional_params: bool = False,
) -> HybridBlock:
    """Copy a block, so that the copy always runs in mixed precision.

    Parameters
    ----------
    block : HybridBlock
    target_dtype : {"float16", "bfloat16"}
    target_dtype_ops, fp32_ops, conditional_fp32_ops, excluded_sym_names : None
        Lists of one's own are not supported, see `init`.
    device : Device or sequence of Device, optional
        Where the parameters of the copy shall be; by default where they are.
    cast_optional_params : bool
        Must be False: parameters stay as they are. The `cast` of the copy changes them.

    Returns
    -------
    HybridBlock
        With parameters of its own. Its `export` writes the casts, too.

    Raises
    ------
    TypeError
        If `block` is no HybridBlock.
    ValueError
        If `target_dtype` is another one, or an argument asks for what does not exist.

    Examples
    --------
    >>> net = mx.gluon.nn.Dense(2, in_units=3)
    >>> net.initialize()
    >>> half = mx.amp.convert_hybrid_block(net)
    >>> half(np.ones((1, 3))).dtype, half.weight.dtype
    (dtype('float16'), dtype('float32'))
    """
    if not isinstance(block, HybridBlock):
        raise TypeError(f"convert_hybrid_block: a HybridBlock is needed, found {type(block).__name__}")
    lists = {"target_dtype_ops": target_dtype_ops, "conditional_fp32_ops": conditional_fp32_ops, "fp32_ops": fp32_ops}
    _refuse("convert_hybrid_block", _BY_MARK, **lists, excluded_sym_names=excluded_sym_names)
    remedy = "call `cast` of the converted block to change its parameters"
    _refuse("convert_hybrid_block", remedy, cast_optional_params=cast_optional_params)
    dtype = checked("convert_hybrid_block", target_dtype)
    made = copy.deepcopy(block)
    made._autocast = dtype
    if device is not None:
        made.reset_device(device)
    return made


def _marked(caller: str, target_dtype: str, mark: str) -> list[dict[str, Any]]:
    checked(caller, target_dtype)
    return [operator for operator in _core.registry() if operator["amp"] == mark]


def _num_arrays(operator: dict[str, Any]) -> float:
    """How many arrays it takes; a list counts as any number."""
    return sum({"array": 1, "arrays": float("inf")}.get(kind, 0) for _, kind, _ in operator["params"])


def list_lp16_ops(target_dtype: str) -> list[str]:
    """Operators that run in half precision.

    Parameters
    ----------
    target_dtype : {"float16", "bfloat16"}
        Both have the same ones.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If `target_dtype` is another one.

    Examples
    --------
    >>> "convolution" in mx.amp.list_lp16_ops("float16")
    True
    """
    return [operator["name"] for operator in _marked("list_lp16_ops", target_dtype, "narrow")]


def list_fp32_ops(target_dtype: str) -> list[str]:
    """Operators that run in float32.

    Parameters
    ----------
    target_dtype : {"float16", "bfloat16"}
        Both have the same ones.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If `target_dtype` is another one.

    Examples
    --------
    >>> "exp" in mx.amp.list_fp32_ops("bfloat16")
    True
    """
    return [operator["name"] for operator in _marked("list_fp32_ops", target_dtype, "widen")]


def list_lp16_fp32_ops(target_dtype: str) -> list[str]:
    """Operators of at most one array that run in its dtype.

    Parameters
    ----------
    target_dtype : {"float16", "bfloat16"}
        Both have the same ones.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If `target_dtype` is another one.

    Examples
    --------
    >>> "relu" in mx.amp.list_lp16_fp32_ops("float16")
    True
    """
    found = _marked("list_lp16_fp32_ops", target_dtype, "follow")
    return [operator["name"] for operator in found if _num_arrays(operator) <= 1]


def list_widest_type_cast(target_dtype: str) -> list[str]:
    """Operators of several arrays that run in the dtype to which these promote.

    Parameters
    ----------
    target_dtype : {"float16", "bfloat16"}
        Both have the same ones.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        If `target_dtype` is another one.

    Examples
    --------
    >>> "add" in mx.amp.list_widest_type_cast("float16")
    True
    """
    found = _marked("list_widest_type_cast", target_dtype, "follow")
    return [operator["name"] for operator in found if _num_arrays(operator) > 1]
