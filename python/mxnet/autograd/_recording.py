"""Recording, and gradients of recorded operations.

Modes belong to a thread, and while it runs an event loop of asyncio to the task: see `docs/design/autograd.md`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mxnet import _core
from mxnet.numpy import ndarray

__all__ = [
    "backward",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "train_mode",
]

Arrays = ndarray | Sequence[ndarray]


def set_recording(is_recording: bool) -> bool:
    """Turn recording on or off in this thread, or in the innermost block of the running asyncio task.

    Parameters
    ----------
    is_recording : bool

    Returns
    -------
    bool
        Whether recording was on before.

    Examples
    --------
    >>> before = mx.autograd.set_recording(True)
    >>> mx.autograd.is_recording(), mx.autograd.set_recording(before)
    (True, True)
    """
    return _core.set_recording(is_recording)


def set_training(train_mode: bool) -> bool:
    """Choose training or prediction behaviour (dropout, batch norm) in this thread or asyncio task.

    Parameters
    ----------
    train_mode : bool

    Returns
    -------
    bool
        Whether training mode was on before.

    Examples
    --------
    >>> before = mx.autograd.set_training(True)
    >>> mx.autograd.is_training(), mx.autograd.set_training(before)
    (True, True)
    """
    return _core.set_training(train_mode)


def is_recording() -> bool:
    """Whether operations of this thread are recorded.

    Returns
    -------
    bool

    Examples
    --------
    >>> with mx.autograd.record():
    ...     mx.autograd.is_recording()
    True
    """
    return _core.is_recording()


def is_training() -> bool:
    """Whether this thread is in training mode.

    Returns
    -------
    bool

    Examples
    --------
    >>> with mx.autograd.record():
    ...     mx.autograd.is_training()
    True
    """
    return _core.is_training()


def record(train_mode: bool = True) -> _core.Mode:
    """Record the operations inside a ``with`` block so that gradients can be asked for.

    Parameters
    ----------
    train_mode : bool
        Mode of dropout, batch norm and the like inside the block.

    Returns
    -------
    context manager
        May be entered again, also by other threads and tasks.

    Notes
    -----
    The block switches its thread. While the thread runs an event loop of asyncio it switches the running task and those
    that this one makes inside the block: other tasks, which run while this one waits, keep their modes.

    Examples
    --------
    >>> import mxnet as mx
    >>> x = mx.np.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad.asnumpy().tolist()
    [2.0, 4.0]
    """
    return _core.Mode(True, train_mode)


def pause(train_mode: bool = False) -> _core.Mode:
    """Stop recording inside a ``with`` block.

    Parameters
    ----------
    train_mode : bool
        Mode of dropout, batch norm and the like inside the block.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with mx.autograd.record():
    ...     with mx.autograd.pause():
    ...         mx.autograd.is_recording()
    False
    """
    return _core.Mode(False, train_mode)


def train_mode() -> _core.Mode:
    """Training mode inside a ``with`` block; whether operations are recorded stays as it is.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with mx.autograd.train_mode():
    ...     mx.autograd.is_training(), mx.autograd.is_recording()
    (True, False)
    """
    return _core.Mode(None, True)


def predict_mode() -> _core.Mode:
    """Prediction mode inside a ``with`` block; whether operations are recorded stays as it is.

    Returns
    -------
    context manager

    Examples
    --------
    >>> with mx.autograd.record():
    ...     with mx.autograd.predict_mode():
    ...         mx.autograd.is_training(), mx.autograd.is_recording()
    (False, True)
    """
    return _core.Mode(None, False)


def _as_list(arrays: Arrays) -> list[ndarray]:
    return [arrays] if isinstance(arrays, ndarray) else list(arrays)


def _head_grads(
    heads: list[ndarray], head_grads: ndarray | Sequence[ndarray | None] | None
) -> list[ndarray | None] | None:
    if head_grads is None:
        return None
    grads: list[ndarray | None] = [head_grads] if isinstance(head_grads, ndarray) else [*head_grads]
    if len(grads) != len(heads):
        raise ValueError(f"`head_grads` has {len(grads)} entries for {len(heads)} heads")
    return grads


def mark_variables(variables: Arrays, gradients: Arrays, grad_reqs: str | Sequence[str] = "write") -> None:
    """Make arrays variables whose gradient is computed.

    Parameters
    ----------
    variables : ndarray or sequence of ndarray
    gradients : ndarray or sequence of ndarray
        Receives the gradient; one for each variable, of its shape and dtype.
    grad_reqs : {"write", "add", "null"} or a sequence of these
        Whether a backward pass overwrites the gradient, adds to it or leaves it alone.

    Raises
    ------
    ValueError
        If the numbers of variables, gradients and requests differ.

    Examples
    --------
    >>> x, gradient = np.array([1.0, 2.0]), np.zeros(2)
    >>> mx.autograd.mark_variables(x, gradient)
    >>> with mx.autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> gradient
    array([2., 4.])
    """
    marked, buffers = _as_list(variables), _as_list(gradients)
    reqs = [grad_reqs] * len(marked) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(marked) == len(buffers) == len(reqs):
        raise ValueError(
            f"{len(marked)} variables, {len(buffers)} gradients and {len(reqs)} requests: the numbers must be equal"
        )
    _core.mark_variables(marked, buffers, reqs)


def backward(
    heads: Arrays,
    head_grads: ndarray | Sequence[ndarray | None] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Compute the gradients of `heads` and store them in the variables' `grad`.

    Parameters
    ----------
    heads : ndarray or sequence of ndarray
        Results of recorded operations.
    head_grads : ndarray, sequence of (ndarray or None), optional
        Gradient of each head; ones by default.
    retain_graph : bool
        Keep what was recorded, so that another backward pass is possible. By default it is freed: its results are
        constants in what is recorded later, as the state that a recurrent network takes from the step before.
    train_mode : bool
        Mode of the gradient operators.

    Raises
    ------
    ValueError
        If the number of `head_grads` differs from the number of heads.
    MXNetError
        If a head was not computed while recording.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y, z = x * x, 3 * x
    >>> mx.autograd.backward([y, z])
    >>> x.grad
    array([5., 7.])
    """
    outputs = _as_list(heads)
    _core.backward(outputs, _head_grads(outputs, head_grads), retain_graph, train_mode)


def grad(
    heads: Arrays,
    variables: Arrays,
    head_grads: ndarray | Sequence[ndarray | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> ndarray | list[ndarray]:
    """Gradients of `heads` with respect to `variables`; the variables' `grad` is not touched.

    Parameters
    ----------
    heads : ndarray or sequence of ndarray
        Results of recorded operations.
    variables : ndarray or sequence of ndarray
        Marked with `attach_grad` or `mark_variables`.
    head_grads : ndarray, sequence of (ndarray or None), optional
        Gradient of each head; ones by default.
    retain_graph : bool, optional
        Keep what was recorded; by default the value of `create_graph`.
    create_graph : bool
        Record the gradient computation too, for gradients of gradients.
    train_mode : bool
        Mode of the gradient operators.

    Returns
    -------
    ndarray or list of ndarray
        One array if `variables` is one array, else a list in its order.

    Raises
    ------
    ValueError
        If the number of `head_grads` differs from the number of heads.
    MXNetError
        If a head was not computed while recording, or a variable was not marked.

    Examples
    --------
    >>> x = np.array([1.0, 2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x ** 3
    ...     slope = mx.autograd.grad(y, x, create_graph=True, retain_graph=True)
    >>> slope.backward()  # the second derivative
    >>> x.grad
    array([ 6., 12.])
    """
    outputs, inputs = _as_list(heads), _as_list(variables)
    keep = create_graph if retain_graph is None else retain_graph
    result = _core.grad(outputs, inputs, _head_grads(outputs, head_grads), keep, create_graph, train_mode)
    return result[0] if isinstance(variables, ndarray) else list(result)
