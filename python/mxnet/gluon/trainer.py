"""Applies an optimizer to the parameters of a network."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from mxnet import _core, autograd
from mxnet import numpy as np
from mxnet._jit import at_each_call
from mxnet.base import PathLike
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray
from mxnet.optimizer import Optimizer, create, get_updater
from mxnet.optimizer._state_files import load_states, save_states

if TYPE_CHECKING:
    from mxnet.amp import LossScaler
    from mxnet.gluon._parameter_store import ParameterStore
    from mxnet.kvstore import KVStoreBase

__all__ = ["Trainer"]

_generation = attrgetter("_generation")
_grad = attrgetter("grad")


class _Trained(NamedTuple):
    """The parameters that have gradients.

    Attributes
    ----------
    numbers : list of int
        Their positions among the trainer's parameters.
    parameters : list of Parameter
    copies : list of list of ndarray
        The values of each parameter on each of its devices.
    arrays : list of ndarray
        All of the copies in one list.
    """

    numbers: list[int]
    parameters: list[Parameter]
    copies: list[list[ndarray]]
    arrays: list[ndarray]

    @property
    def is_on_one_device(self) -> bool:
        """Whether each parameter has one copy."""
        return len(self.arrays) == len(self.copies)

    def those(self, is_fresh: Sequence[bool]) -> _Trained:
        """The parameters with a true entry in `is_fresh`."""
        if all(is_fresh):
            return self
        found = [i for i, is_new in enumerate(is_fresh) if is_new]
        return _trained([self.numbers[i] for i in found], [self.parameters[i] for i in found])


def _trained(numbers: list[int], parameters: list[Parameter]) -> _Trained:
    copies = [parameter.list_data() for parameter in parameters]
    return _Trained(numbers, parameters, copies, [array for arrays in copies for array in arrays])


class Trainer:
    """Applies an optimizer to parameters; see `step`.

    Parameters
    ----------
    params : mapping of str to Parameter, or sequence of Parameter
        Usually ``net.collect_params()``. Those without a gradient are passed over.
    optimizer : str or Optimizer
    optimizer_params : mapping, optional
        Arguments of the optimizer, if it is given by name.
    kvstore : str, KVStoreBase or None
        Adds up the gradients of all devices and, if it is distributed, of all processes; see `mx.kvstore.create`. By
        ``"device"``, ``"local"`` and None the trainer adds up those of the devices of this process.
    compression_params : mapping, optional
        How gradients are compressed for sending; see `mx.kvstore.KVStore.set_gradient_compression`.
    update_on_kvstore : bool, optional
        Whether the store updates the parameters, instead of the trainer. By default only asynchronous stores do, which
        cannot do otherwise. If the store does, `allreduce_grads` and `update` cannot be called.

    Raises
    ------
    TypeError
        If `params` holds something else than parameters, or `kvstore` is neither a name nor a store.
    ValueError
        If an argument asks for what does not exist.

    Notes
    -----
    With a distributed store, each process makes a trainer of the same network. The trainer gives all processes the
    values that parameters have in process 0: at once, or if the first input completes the shapes, in the first step. In
    each step the processes wait for each other.

    Examples
    --------
    >>> import mxnet as mx
    >>> net = mx.gluon.nn.Dense(1, in_units=1)
    >>> net.initialize()
    >>> trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    >>> x, y = mx.np.ones((4, 1)), mx.np.ones((4, 1))
    >>> with mx.autograd.record():
    ...     loss = mx.gluon.loss.L2Loss()(net(x), y)
    >>> loss.backward()
    >>> trainer.step(batch_size=4)
    """

    def __init__(
        self,
        params: Mapping[str, Parameter] | Sequence[Parameter],
        optimizer: str | Optimizer,
        optimizer_params: Mapping[str, Any] | None = None,
        kvstore: str | KVStoreBase | None = "device",
        compression_params: Mapping[str, Any] | None = None,
        update_on_kvstore: bool | None = None,
    ) -> None:
        given: Any = params
        if not isinstance(given, Iterable):
            hint = ", as `collect_params()` of a block gives them" if hasattr(given, "collect_params") else ""
            raise TypeError(
                f"Trainer: `params` must be a mapping or sequence of parameters{hint}, found {type(given).__name__}"
            )
        found = list(params.values()) if isinstance(params, Mapping) else list(params)
        for parameter in found:
            if not isinstance(parameter, Parameter):
                raise TypeError(f"`params` must hold parameters, found {type(parameter).__name__}")
        # A parameter that is used in two places is updated once, and called by its first name.
        names = params.keys() if isinstance(params, Mapping) else [parameter.name for parameter in found]
        named: dict[Parameter, str] = {}
        for name, parameter in zip(names, found, strict=True):
            named.setdefault(parameter, name)
        self._params = list(named)
        self._names = list(named.values())
        self._optimizer = self._make_optimizer(optimizer, dict(optimizer_params or {}))
        self._scale = float(self._optimizer.rescale_grad)
        # Set by `amp.init_trainer`, and the factor of the loss whose gradients the next step applies.
        self._loss_scaler: LossScaler | None = None
        self._gradient_scale = 1.0
        self._updaters = [get_updater(self._optimizer)]
        # What `_find_trained` found, and the generations of the parameters for which it is true.
        self._found: tuple[list[int], _Trained] | None = None
        self._store: ParameterStore | None = None
        is_local = kvstore is None or (isinstance(kvstore, str) and kvstore.lower() in ("local", "device"))
        if not is_local or compression_params is not None or update_on_kvstore:
            from mxnet.gluon._parameter_store import open_store

            self._store = open_store(kvstore, self._params, self._optimizer, compression_params, update_on_kvstore)

    def _make_optimizer(self, optimizer: str | Optimizer, arguments: dict[str, Any]) -> Optimizer:
        numbered = dict(enumerate(self._params))
        if isinstance(optimizer, Optimizer):
            if arguments:
                raise ValueError("`optimizer_params` must be None if `optimizer` is an Optimizer and not a name")
            optimizer.param_dict = numbered
            return optimizer
        return create(optimizer, param_dict=numbered, **arguments)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The optimizer's learning rate."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the optimizer's learning rate.

        Parameters
        ----------
        lr : float

        Raises
        ------
        UserWarning
            If a scheduler decides the rate.
        """
        self._optimizer.set_learning_rate(lr)

    def __repr__(self) -> str:
        return f"Trainer({self._optimizer!r}, {len(self._params)} parameters)"

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Add up the gradients of all devices and processes, and update the parameters.

        After `amp.init_trainer`, a step whose gradients are not finite changes no parameter.

        Parameters
        ----------
        batch_size : float
            Gradients are divided by it; 1 if the loss is a mean over the batch already.
        ignore_stale_grad : bool
            See `update`.

        Raises
        ------
        UserWarning
            If no backward pass has written a gradient since the last step and `ignore_stale_grad` is off.
        DeferredInitializationError
            If a parameter's shape is not known yet.
        RuntimeError
            If a parameter is not initialized.
        """
        trained = self._find_trained()
        if self._store is not None:
            self._store.refuse_traces("step")
        self._check(trained, batch_size, ignore_stale_grad)
        if self._store is not None and self._store.updates:
            self._update_in_store(self._store, trained, batch_size, ignore_stale_grad)
            return
        self._add_up(trained, may_be_stale=ignore_stale_grad)
        self._apply(trained, batch_size, ignore_stale_grad)

    def _find_trained(self) -> _Trained:
        """The parameters that have gradients, found anew after arrays of a parameter were replaced."""
        generations = list(map(_generation, self._params))
        if self._found is None or self._found[0] != generations:
            numbers = [i for i, parameter in enumerate(self._params) if parameter.grad_req != "null"]
            self._found = generations, _trained(numbers, [self._params[i] for i in numbers])
        return self._found[1]

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but the arrays that the next step finds again."""
        return {**vars(self), "_found": None}

    def allreduce_grads(self) -> None:
        """Replace the gradients by their sums over all devices and processes.

        Raises
        ------
        DeferredInitializationError
            If a parameter's shape is not known yet.
        RuntimeError
            If a parameter is not initialized, or if the store updates the parameters; see `update_on_kvstore`.
        """
        if self._store is not None:
            self._store.refuse_separate_calls("allreduce_grads")
            self._store.refuse_traces("allreduce_grads")
        self._add_up(self._find_trained())

    def _add_up(self, trained: _Trained, may_be_stale: bool = True) -> None:
        if self._store is not None:
            self._store.send_first_values()
            self._store.add_up(trained.numbers, trained.copies, self._counted(self._store, trained, may_be_stale))
            return
        if trained.is_on_one_device:
            return
        for parameter, copies in zip(trained.parameters, trained.copies, strict=True):
            if len(copies) == 1:
                continue
            grads = parameter.list_grad()
            is_fresh = _core.are_gradients_fresh(copies)
            fresh = [grad for grad, counts in zip(grads, is_fresh, strict=True) if counts]
            if parameter.grad_stype == "row_sparse":
                _add_rows(parameter, fresh or grads)
                continue
            with autograd.pause():
                # What a step has applied does not count again; without anything new, gradients were written by hand.
                total, *others = fresh or grads
                for grad in others:
                    total = total + np.array(grad, dtype=grad.dtype, device=total.device)
                for grad in grads:
                    grad[:] = np.array(total, dtype=total.dtype, device=grad.device)

    def _counted(self, store: ParameterStore, trained: _Trained, may_be_stale: bool) -> list[list[Any]]:
        """The gradients of each parameter that are added up.

        What a step has applied does not count again. Without anything new on any rank, gradients were written by hand.
        """
        if not may_be_stale:
            return [parameter.list_grad() for parameter in trained.parameters]
        found: list[list[Any]] = []
        is_fresh = _is_fresh(trained)
        is_fresh_anywhere = store.fresh_on_any_rank(is_fresh)
        for parameter, copies, here, anywhere in zip(
            trained.parameters, trained.copies, is_fresh, is_fresh_anywhere, strict=True
        ):
            grads = parameter.list_grad()
            if not anywhere:
                found.append(grads)
            elif here:
                flags = _core.are_gradients_fresh(copies)
                found.append([grad for grad, counts in zip(grads, flags, strict=True) if counts])
            else:
                found.append([_zeros_like(grads[0])])
                # The sum is new on this rank, too.
                _core.set_gradient_fresh(copies, fresh=True)
        return found

    def _update_in_store(
        self, store: ParameterStore, trained: _Trained, batch_size: float, ignore_stale_grad: bool
    ) -> None:
        if self._loss_scaler is not None:
            raise RuntimeError(
                "Trainer.step: a store that updates parameters cannot skip gradients that are not finite\n"
                "  hint: make the trainer with `update_on_kvstore=False`, or use bfloat16 without `amp.init_trainer`"
            )
        store.send_first_values()
        self._optimizer.rescale_grad = self._scale / batch_size
        grads = self._counted(store, trained, ignore_stale_grad)
        is_new = _is_fresh(trained)
        new = trained.those(is_new)
        store.update(new.numbers, new.copies, [grad for grad, counts in zip(grads, is_new, strict=True) if counts])
        _core.set_gradient_fresh(new.arrays, fresh=False)

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Update the parameters; for use after `allreduce_grads`, `step` does both.

        Parameters
        ----------
        batch_size : float
            Gradients are divided by it.
        ignore_stale_grad : bool
            Leave parameters alone whose gradients no backward pass has written since the last step. Without it they
            are an error: the loss does not depend on them, or `backward` was forgotten.

        Raises
        ------
        UserWarning
            If such gradients are found and `ignore_stale_grad` is off. Nothing is updated then.
        DeferredInitializationError
            If a parameter's shape is not known yet.
        RuntimeError
            If a parameter is not initialized, or if the store updates the parameters; see `update_on_kvstore`.
        ValueError
            If `batch_size` is not positive.
        """
        if self._store is not None:
            self._store.refuse_separate_calls("update")
            self._store.refuse_traces("update")
        trained = self._find_trained()
        self._check(trained, batch_size, ignore_stale_grad)
        self._apply(trained, batch_size, ignore_stale_grad)

    def _apply(self, trained: _Trained, batch_size: float, ignore_stale_grad: bool) -> None:
        """Update the parameters whose gradients are new: all of them, where `_check` refuses others."""
        if self._loss_scaler is not None and self._skips(trained, self._loss_scaler):
            return
        optimizer, gradient_scale = self._optimizer, self._gradient_scale
        self._gradient_scale = 1.0

        def set_scale() -> None:
            optimizer.rescale_grad = self._scale / gradient_scale / batch_size

        at_each_call(set_scale)
        new = trained.those(_is_fresh(trained)) if ignore_stale_grad else trained
        # One call of the optimizer for each place in the parameters' lists of devices.
        for position in range(max(map(len, new.copies), default=0)):
            numbers, parameters, weights = new.numbers, new.parameters, new.arrays
            if not new.is_on_one_device:
                here = [i for i, copies in enumerate(new.copies) if position < len(copies)]
                numbers, parameters = [numbers[i] for i in here], [parameters[i] for i in here]
                weights = [new.copies[i][position] for i in here]
            grads: list[Any] = list(map(_grad, weights))
            if type(None) in set(map(type, grads)):
                # Raises with the parameter's name.
                grads = [parameter._grad_of(weight) for parameter, weight in zip(parameters, weights, strict=True)]
            if position == len(self._updaters):
                self._updaters.append(get_updater(self._optimizer))
            at_each_call(functools.partial(optimizer._set_current_device, position))
            self._updaters[position](numbers, grads, weights)
            at_each_call(functools.partial(_core.set_gradient_fresh, weights, fresh=False))

    def _skips(self, trained: _Trained, scaler: LossScaler) -> bool:
        """Whether gradients overflowed, so that they are not applied; changes the factor of the next loss."""
        if _core.trace_is_active():
            raise RuntimeError(
                "Trainer.step: a compiled function cannot read whether gradients are finite\n"
                "  hint: call `step` outside of it, or use bfloat16, which needs no `amp.init_trainer`"
            )
        overflow = scaler.has_overflow(trained.parameters)
        scaler.update_scale(overflow)
        if overflow:
            self._gradient_scale = 1.0
            _core.set_gradient_fresh(trained.arrays, fresh=False)
        return overflow

    def _check(self, trained: _Trained, batch_size: float, ignore_stale_grad: bool) -> None:
        """Refuse what is no batch size, and to apply gradients again that the last step has applied."""
        if not batch_size > 0:
            raise ValueError(f"`batch_size` must be positive, found {batch_size}")
        if not ignore_stale_grad:
            at_each_call(functools.partial(self._check_fresh, trained))

    def _check_fresh(self, trained: _Trained) -> None:
        if all(_core.are_gradients_fresh(trained.arrays)):
            return
        stale = [
            self._names[number]
            for number, copies in zip(trained.numbers, trained.copies, strict=True)
            if not all(_core.are_gradients_fresh(copies))
        ]
        shown = ", ".join(repr(name) for name in stale[:10]) + (" and others" if len(stale) > 10 else "")
        raise UserWarning(
            f"no backward pass has written the gradients of {len(stale)} of {len(self._params)} parameters since the "
            f"last step: {shown}; the loss does not depend on them, or `backward` was not called; "
            "`ignore_stale_grad=True` leaves them alone"
        )

    def save_states(self, fname: PathLike) -> None:
        """Write the states of the optimizer, its hyperparameters and update counts to a file, atomically.

        Parameters
        ----------
        fname : path

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        if self._store is not None and self._store.updates:
            self._store.send_first_values()
            self._store.store.save_optimizer_states(fname, dump_optimizer=True)
            return
        save_states(self._updaters[0], fname, dump_optimizer=True)

    def load_states(self, fname: PathLike) -> None:
        """Read what `save_states` wrote.

        Parameters
        ----------
        fname : path

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        mxnet.error.IOError
            If it is no file but a pipe or a device.
        FileFormatError
            If the file is damaged or of another format.
        ValueError
            If it was written with another class of optimizer.
        """
        if self._store is not None and self._store.updates:
            self._store.send_first_values()
            self._store.store.load_optimizer_states(fname)
            return
        numbers = len(max((parameter._data for parameter in self._params), key=len, default={}))
        updaters = [get_updater(self._optimizer) for _ in range(max(numbers, 1))]
        load_states(updaters, fname)
        self._updaters = updaters


def _is_fresh(trained: _Trained) -> list[bool]:
    """Whether a backward pass has written a gradient of each parameter since the last step."""
    flags: list[bool] = _core.are_gradients_fresh(trained.arrays)
    if trained.is_on_one_device:
        return flags
    flag = iter(flags)
    return [any([next(flag) for _ in copies]) for copies in trained.copies]  # noqa: C419  takes all of them


def _zeros_like(grad: Any) -> Any:
    """A gradient of the same form that adds nothing."""
    if isinstance(grad, ndarray):
        return np.zeros_like(grad)
    return type(grad)._of(grad.data[:0], grad.indices[:0], grad.shape)


def _add_rows(parameter: Parameter, grads: Sequence[Any]) -> None:
    """Give each copy of a parameter the sum of all of their row-sparse gradients, which hold the rows of any."""
    with autograd.pause():
        for array in parameter.list_data():
            parts = [
                np.concatenate([np.array(part, dtype=part.dtype, device=array.device) for part in found])
                for found in ([grad.indices for grad in grads], [grad.data for grad in grads])
            ]
            _core.set_row_gradient(array, *parts)
