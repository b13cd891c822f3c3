"""The base class of the optimizers and their registry."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from mxnet import _core, autograd, error
from mxnet import numpy as np
from mxnet._argument_repr import argument_repr, default_of
from mxnet._jit import at_each_call
from mxnet.base import MXNetError, dtype_name
from mxnet.device import Device
from mxnet.lr_scheduler import LRScheduler
from mxnet.numpy import ndarray
from mxnet.optimizer._updates import StepNumbers

__all__ = ["Optimizer", "State", "create", "register"]

# What an optimizer keeps for one weight: nothing, an array, or a tuple of such.
State = Any
_HALF = ("float16", "bfloat16")


def _argument_names(kind: type[Optimizer]) -> list[str]:
    """Names of the arguments that a class and its base classes take."""
    names = [
        argument.name
        for owner in kind.__mro__
        if "__init__" in vars(owner) and owner is not object
        for argument in list(inspect.signature(owner.__init__).parameters.values())[1:]  # type: ignore[misc]
        if argument.kind is argument.POSITIONAL_OR_KEYWORD
    ]
    return list(dict.fromkeys(names))


class Optimizer:
    """Base class: learning rates, weight decays and update counts of numbered weights.

    A subclass defines `create_state` and one of two methods: `_rule`, which updates one weight and gets the gradient
    already rescaled and clipped, or `step`, which gets lists and does everything itself. `fused_step` may be defined
    too, to update all weights in one call; the optimizers of this package do that with one operator each.

    Parameters
    ----------
    rescale_grad : float
        Factor of every gradient, usually 1 / batch size.
    param_idx2name : mapping of int to str, optional
        Names of the weights, for `set_lr_mult` and `set_wd_mult`.
    wd : float
        Weight decay, the factor of the L2 penalty's gradient.
    clip_gradient : float, optional
        Rescaled gradients are clipped to ``[-clip_gradient, clip_gradient]``.
    learning_rate : float, optional
        0.01 by default; becomes the base rate of `lr_scheduler`, unless it is the default and that of the scheduler is
        not.
    lr_scheduler : LRScheduler or callable, optional
        Learning rate as a function of the number of updates.
    begin_num_update : int
        Number of updates that were made before.
    multi_precision : bool
        Keep a float32 copy of float16 and bfloat16 weights and update that.
    param_dict : mapping of int to Parameter, optional
        Where `lr_mult` and `wd_mult` of the weights are looked up.
    aggregate_num : int or infinity, optional
        Largest number of weights in one call of `step`; 0 means one at a time, infinity and None mean all.
    use_fused_step : bool, optional
        Whether to call `fused_step`, if the subclass has one, in place of `step`; both give the same result up to
        rounding.

    **unknown
        Any other name is a TypeError that lists the names.

    Raises
    ------
    ValueError
        If a number is out of range.
    TypeError
        If there is no argument of a name.

    Examples
    --------
    >>> optimizer = mx.optimizer.create('sgd', learning_rate=0.5)
    >>> optimizer.set_learning_rate(0.25)
    >>> optimizer.learning_rate
    0.25
    """

    opt_registry: ClassVar[dict[str, type[Optimizer]]] = {}

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: Mapping[int, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: Mapping[int, Any] | None = None,
        aggregate_num: float | None = None,
        use_fused_step: bool | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise TypeError(
                f"{type(self).__name__} has no argument {', '.join(map(repr, unknown))}; it takes "
                f"{', '.join(_argument_names(type(self)))}"
            )
        if clip_gradient is not None and clip_gradient <= 0:
            raise ValueError(f"`clip_gradient` must be positive or None, found {clip_gradient}")
        if aggregate_num is not None and not (aggregate_num >= 0 and aggregate_num in (math.inf, aggregate_num // 1)):
            raise ValueError(f"`aggregate_num` must be a count, infinity or None, found {aggregate_num}")
        self.rescale_grad = rescale_grad
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.lr_scheduler = lr_scheduler
        self.lr = 0.01 if learning_rate is None else learning_rate
        if isinstance(lr_scheduler, LRScheduler):
            base_lr = lr_scheduler.base_lr
            is_of_scheduler = base_lr != default_of(lr_scheduler, "base_lr")
            if learning_rate is None or (is_of_scheduler and learning_rate == default_of(self, "learning_rate")):
                self.lr = base_lr
            else:
                lr_scheduler.base_lr = learning_rate
                lr_scheduler.warmup_final_lr = learning_rate
                if hasattr(lr_scheduler, "base_lr_orig"):
                    lr_scheduler.base_lr_orig = learning_rate
        self.multi_precision = multi_precision
        self.aggregate_num = aggregate_num
        self.use_fused_step = use_fused_step if use_fused_step is not None else True
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = dict(param_dict or {})
        # Each device has its own copy of the weights and so counts by itself.
        self._all_index_update_counts: dict[int, dict[int, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        self.lr_mult: dict[int | str, float] = {}
        self.wd_mult: dict[int | str, float] = {}
        # Arrays for fused updates, for each device and list of weights.
        self._step_numbers: dict[tuple[Device, tuple[int, ...]], StepNumbers] = {}

    def __repr__(self) -> str:
        text = argument_repr(self, ("learning_rate", "param_dict", "param_idx2name", "use_fused_step"))
        rate = f"learning_rate={self.learning_rate}"
        return text.replace("(", f"({rate}, " if not text.endswith("()") else f"({rate}", 1)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled: all but the arrays of fused updates, which the next update makes again."""
        return {**vars(self), "_step_numbers": {}}

    # ---- registry ----

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """Class decorator that makes an optimizer known to `create` under its name in lower case.

        Parameters
        ----------
        klass : subclass of Optimizer

        Returns
        -------
        class
            `klass`.
        """
        Optimizer.opt_registry[klass.__name__.lower()] = klass
        return klass

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Make an optimizer from its name.

        Parameters
        ----------
        name : str
            Name of the class; case does not matter.
        **kwargs
            Arguments of the class.

        Returns
        -------
        Optimizer

        Raises
        ------
        ValueError
            If there is no such optimizer.
        """
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            raise ValueError(f"no optimizer {name!r}; known are {', '.join(sorted(Optimizer.opt_registry))}")
        return klass(**kwargs)

    # ---- rates ----

    @property
    def learning_rate(self) -> float:
        """Rate of the next update, before the weights' own factors."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate.

        Parameters
        ----------
        lr : float

        Raises
        ------
        UserWarning
            If a scheduler decides the rate.
        """
        if self.lr_scheduler is not None:
            raise UserWarning("the scheduler decides the learning rate, so it cannot be set")
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: Mapping[int | str, float]) -> None:
        """Set factors of the learning rate.

        Parameters
        ----------
        args_lr_mult : mapping of int or str to float
            By number or name of the weight; a `param_dict` has precedence.
        """
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult: Mapping[int | str, float]) -> None:
        """Set factors of the weight decay.

        Parameters
        ----------
        args_wd_mult : mapping of int or str to float
            By number or name of the weight; a `param_dict` has precedence.
        """
        self.wd_mult = dict(args_wd_mult)

    def _set_current_device(self, device_id: int) -> None:
        """Count the updates of the copies on another device from now on."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: int | Sequence[int]) -> None:
        """Count an update of one weight or of several; for `step` methods of own optimizers."""
        counts, before = self._index_update_count, self.begin_num_update
        numbers = [index] if isinstance(index, int) else index
        if not numbers:
            return
        same = counts.get(numbers[0])
        if same is not None and len(set(map(counts.get, numbers))) == 1:
            # All weights have been updated equally often, as in a network that is trained as a whole.
            new = dict.fromkeys(numbers, same + 1)
            if len(new) == len(numbers):
                counts.update(new)
                self.num_update = max(self.num_update, new[numbers[0]])
                return
        for number in numbers:
            counts[number] = count = counts.get(number, before) + 1
            self.num_update = max(self.num_update, count)

    def _factor(self, index: int, own: Mapping[int | str, float]) -> float:
        return own[index] if index in own else own.get(self.idx2name.get(index, ""), 1.0)

    def _factors(self, indices: Sequence[int], name: str, own: Mapping[int | str, float]) -> list[float]:
        """The factors of weights: the attribute `name` of their parameters, or what `own` says of those without one."""
        parameters = self.param_dict
        try:
            return list(map(attrgetter(name), map(parameters.__getitem__, indices)))
        except KeyError:
            pass
        return [getattr(parameters[i], name) if i in parameters else self._factor(i, own) for i in indices]

    def _get_lrs(self, indices: Sequence[int]) -> list[float]:
        lr = self.learning_rate
        return [lr * factor for factor in self._factors(indices, "lr_mult", self.lr_mult)]

    def _get_wds(self, indices: Sequence[int]) -> list[float]:
        wd = self.wd
        return [wd * factor for factor in self._factors(indices, "wd_mult", self.wd_mult)]

    def _get_lr(self, index: int) -> float:
        """Learning rate of a weight, its own factor included; for `step` methods of own optimizers."""
        return self._get_lrs([index])[0]

    def _get_wd(self, index: int) -> float:
        """Weight decay of a weight, its own factor included; for `step` methods of own optimizers."""
        return self._get_wds([index])[0]

    # ---- updates ----

    def create_state(self, index: int, weight: ndarray) -> State:
        """What has to be kept for a weight between updates.

        Parameters
        ----------
        index : int
            Number of the weight.
        weight : ndarray

        Returns
        -------
        None, ndarray or tuple
        """
        return None

    def _has_master_copy(self, weight: ndarray) -> bool:
        return self.multi_precision and dtype_name(weight.dtype) in _HALF

    def create_state_multi_precision(self, index: int, weight: ndarray) -> State:
        """As `create_state`, with a float32 copy of the weight in front where `multi_precision` asks for it.

        Parameters
        ----------
        index : int
            Number of the weight.
        weight : ndarray

        Returns
        -------
        None, ndarray or tuple
            ``(float32 copy, state of the copy)`` for float16 and bfloat16 weights if `multi_precision` is on.
        """
        if not self._has_master_copy(weight):
            return self.create_state(index, weight)
        master = weight.astype("float32")
        return (master, self.create_state(index, master))

    def _prepared(self, grad: ndarray) -> ndarray:
        """The gradient, rescaled and clipped."""
        grad = grad * self.rescale_grad
        return grad if self.clip_gradient is None else np.clip(grad, -self.clip_gradient, self.clip_gradient)

    def _rule(self, weight: ndarray, grad: ndarray, state: State, lr: float, wd: float, count: int) -> None:
        """Update one weight and its state in place.

        `grad` is rescaled and clipped, without weight decay; `count` is the number of this update, from 1.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither _rule nor step")

    def step(
        self, indices: Sequence[int], weights: Sequence[ndarray], grads: Sequence[ndarray], states: Sequence[State]
    ) -> None:
        """Update weights and states in place, one after the other.

        Parameters
        ----------
        indices : sequence of int
            Numbers of the weights.
        weights, grads : sequence of ndarray
            Each gradient has the shape of its weight.
        states : sequence
            Made by `create_state`.
        """
        if _core.trace_is_active():
            raise MXNetError(
                f"{type(self).__name__}.step: the numbers of a step are Python's, so a compiled function would repeat "
                "those of its first call\n  hint: define `_formula` as a ComposedOptimizer does, or call the trainer "
                "outside the function"
            )
        self._update_count(indices)
        lrs, wds = self._get_lrs(indices), self._get_wds(indices)
        for index, weight, grad, state, lr, wd in zip(indices, weights, grads, states, lrs, wds, strict=True):
            self._rule(weight, self._prepared(grad), state, lr, wd, self._index_update_count[index])

    def fused_step(
        self, indices: Sequence[int], weights: Sequence[ndarray], grads: Sequence[ndarray], states: Sequence[State]
    ) -> None:
        """As `step`, in one call of an operator where the subclass has one.

        Parameters
        ----------
        indices, weights, grads, states
            See `step`.
        """
        if self._has_fused_update():
            self._fused_step(indices, weights, grads, states, [None] * len(weights))
        else:
            self.step(indices, weights, grads, states)

    def _has_fused_update(self) -> bool:
        return type(self)._fused_update is not Optimizer._fused_update

    def _fused_step(
        self,
        indices: Sequence[int],
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
    ) -> None:
        """Update weights and states by one call of `_fused_update` for each device."""
        # What the host counts and decides is done before each run of a compiled step, too.
        at_each_call(lambda: self._update_count(indices))
        device = _core.common_device(weights)
        if device is not None:
            self._fused_on_device(device, indices, weights, grads, states, masters)
            return
        devices = [weight.device for weight in weights]
        for device in dict.fromkeys(devices):
            here = [position for position, other in enumerate(devices) if other == device]
            self._fused_on_device(
                device,
                [indices[position] for position in here],
                [weights[position] for position in here],
                [grads[position] for position in here],
                [states[position] for position in here],
                [masters[position] for position in here],
            )

    def _fused_on_device(
        self,
        device: Device,
        indices: Sequence[int],
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
    ) -> None:
        key = (device, tuple(indices))
        numbers = self._step_numbers.get(key)
        if numbers is None:
            numbers = _core.outside_trace(lambda: StepNumbers(len(indices), device))
            self._step_numbers[key] = numbers

        def write() -> None:
            lrs = self._get_lrs(indices)
            wds = self._fused_wds(lrs, self._get_wds(indices))
            counts = list(map(self._index_update_count.__getitem__, indices))
            numbers.write(lrs, wds, counts, self.rescale_grad)

        at_each_call(write)
        self._fused_update(weights, grads, states, masters, numbers)

    def _fused_wds(self, lrs: Sequence[float], wds: Sequence[float]) -> Sequence[float]:
        """The weight decays as the operator takes them."""
        return wds

    def _fused_update(
        self,
        weights: Sequence[ndarray],
        grads: Sequence[ndarray],
        states: Sequence[State],
        masters: Sequence[ndarray | None],
        numbers: StepNumbers,
    ) -> None:
        """Update weights on one device in one call, in place; `masters` are float32 copies of weights, or None."""
        raise NotImplementedError(f"{type(self).__name__} has no fused update")

    def _parts(self, num_weights: int) -> list[slice]:
        """Slices of at most `aggregate_num` weights."""
        limit = math.inf if self.aggregate_num is None else max(self.aggregate_num, 1)
        size = int(min(limit, max(num_weights, 1)))
        return [slice(start, start + size) for start in range(0, num_weights, size)]

    def update(
        self, indices: Sequence[int], weights: Sequence[ndarray], grads: Sequence[ndarray], states: Sequence[State]
    ) -> None:
        """Update weights and states in place, unrecorded.

        Parameters
        ----------
        indices, weights, grads, states
            See `step`. Gradients may be `row_sparse_array`: optimizers with `lazy_update` change the rows that these
            hold and their states, others take all other rows for zero.
        """
        if not _are_dense(grads):
            self._by_rows(self.update, indices, weights, grads, states)
            return
        method = self.fused_step if self.use_fused_step else self.step
        with autograd.pause():
            for part in self._parts(len(indices)):
                method(indices[part], weights[part], grads[part], states[part])

    # Whether a step changes each row by what is known of that row alone: rows without a gradient can be left out.
    _is_rowwise = False
    lazy_update = False

    def _by_rows(
        self,
        update: Callable[..., None],
        indices: Sequence[int],
        weights: Sequence[ndarray],
        grads: Sequence[Any],
        states: Sequence[State],
    ) -> None:
        """Call `update` with dense gradients: of lazy updates those of the rows that have one."""
        if self.lazy_update and not self._is_rowwise:
            raise error.UnsupportedError(
                f"{type(self).__name__}: a step needs all rows of a weight, so it leaves none out\n"
                "  hint: lazy_update=False"
            )
        is_lazy = self.lazy_update
        with autograd.pause():
            dense_updates: tuple[list[Any], list[Any], list[Any], list[Any]] = ([], [], [], [])
            for index, weight, grad, state in zip(indices, weights, grads, states, strict=True):
                if isinstance(grad, ndarray) or not is_lazy:
                    dense = grad if isinstance(grad, ndarray) else grad.todense()
                    for column, item in zip(dense_updates, (index, weight, dense, state), strict=True):
                        column.append(item)
                    continue
                rows = grad.indices
                some = weight[rows]
                kept = _rows(state, rows)
                update([index], [some], [grad.data], [kept])
                weight[rows] = some
                _put_rows(state, rows, kept)
            if dense_updates[0]:
                update(*dense_updates)

    def update_multi_precision(
        self, indices: Sequence[int], weights: Sequence[ndarray], grads: Sequence[ndarray], states: Sequence[State]
    ) -> None:
        """As `update`, through the float32 copies where there are any.

        Parameters
        ----------
        indices, weights, grads : see `step`
        states : sequence
            Made by `create_state_multi_precision`.
        """
        if not _are_dense(grads):
            self._by_rows(self.update_multi_precision, indices, weights, grads, states)
            return
        with autograd.pause():
            copied = [self._has_master_copy(weight) for weight in weights] if self.multi_precision else []
            if not any(copied):
                self.update(indices, weights, grads, states)
                return
            is_own = type(self).fused_step is not Optimizer.fused_step
            if self.use_fused_step and self._has_fused_update() and not is_own:
                masters = [state[0] if has else None for state, has in zip(states, copied, strict=True)]
                inner = [state[1] if has else state for state, has in zip(states, copied, strict=True)]
                for part in self._parts(len(indices)):
                    self._fused_step(indices[part], weights[part], grads[part], inner[part], masters[part])
                return
            targets = [state[0] if has else weight for weight, state, has in zip(weights, states, copied, strict=True)]
            wide = [grad.astype("float32") if has else grad for grad, has in zip(grads, copied, strict=True)]
            inner = [state[1] if has else state for state, has in zip(states, copied, strict=True)]
            self.update(indices, targets, wide, inner)
            for weight, target, has in zip(weights, targets, copied, strict=True):
                if has:
                    weight[:] = target


def _are_dense(grads: Sequence[Any]) -> bool:
    return all(issubclass(kind, ndarray) for kind in set(map(type, grads)))


def _rows(state: State, rows: ndarray) -> State:
    """Copies of some rows of all arrays of a state."""
    if isinstance(state, tuple):
        return tuple(_rows(part, rows) for part in state)
    return None if state is None else state[rows]


def _put_rows(state: State, rows: ndarray, values: State) -> None:
    if isinstance(state, tuple):
        for part, value in zip(state, values, strict=True):
            _put_rows(part, rows, value)
    elif state is not None:
        state[rows] = values


_Class = TypeVar("_Class", bound=type[Optimizer])


def register(klass: _Class) -> _Class:
    """Class decorator that makes an optimizer known to `create` under its name in lower case.

    Parameters
    ----------
    klass : subclass of Optimizer

    Returns
    -------
    class
        `klass`.

    Examples
    --------
    >>> @mx.optimizer.register
    ... class Signs(mx.optimizer.Optimizer):
    ...     def create_state(self, index, weight):
    ...         return None
    ...     def step(self, indices, weights, grads, states):
    ...         for weight, grad in zip(weights, grads):
    ...             weight -= self.learning_rate * np.sign(grad)
    >>> mx.optimizer.create('signs', learning_rate=0.5).learning_rate
    0.5
    """
    Optimizer.register(klass)
    return klass


def create(name: str, **kwargs: Any) -> Optimizer:
    """Make an optimizer from its name.

    Parameters
    ----------
    name : str
        Name of the class; case does not matter.
    **kwargs
        Arguments of the class.

    Returns
    -------
    Optimizer

    Raises
    ------
    ValueError
        If there is no such optimizer.

    Examples
    --------
    >>> from mxnet import optimizer
    >>> optimizer.create("sgd", learning_rate=0.5).learning_rate
    0.5
    """
    return Optimizer.create_optimizer(name, **kwargs)
