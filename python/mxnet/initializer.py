"""First values of parameters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as onp

from mxnet import numpy as np
from mxnet import registry
from mxnet._rnn_layout import packed_input_size, packed_shapes
from mxnet.base import dtype_name
from mxnet.numpy import ndarray

__all__ = [
    "Bilinear",
    "Constant",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "RNNFused",
    "Uniform",
    "Xavier",
    "Zero",
    "create",
    "register",
]


class InitDesc(str):
    """Name of the array to fill, with what is known about it.

    Parameters
    ----------
    name : str
        The suffix (``weight``, ``bias``, ...) decides the values that an initializer's default rule gives.
    attrs : mapping, optional
        ``attrs["__init__"]`` is an initializer that overrules the suffix.
    global_init : Initializer, optional
        What was asked for the whole network.

    Examples
    --------
    >>> name = mx.init.InitDesc('dense0_weight', {'lr_mult': '2'})
    >>> name, name.attrs
    ('dense0_weight', {'lr_mult': '2'})
    """

    attrs: dict[str, Any]
    global_init: Initializer | None

    def __new__(
        cls, name: str, attrs: Mapping[str, Any] | None = None, global_init: Initializer | None = None
    ) -> InitDesc:
        desc = super().__new__(cls, name)
        desc.attrs = dict(attrs or {})
        desc.global_init = global_init
        return desc


class Initializer:
    """Base class: fills an array according to its name.

    Names that end in ``weight`` get what the subclass defines in `_init_weight`; ``bias``, ``beta``, ``mean`` and
    ``moving_avg`` zeros; ``gamma`` and ``var`` ones; all others `_init_weight` too.

    Parameters
    ----------
    **kwargs
        What was passed to the subclass; shown by `dumps` and in comparisons.

    Examples
    --------
    >>> @mx.init.register
    ... class Counting(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[...] = np.arange(array.size).reshape(array.shape)
    >>> weight = np.zeros((2, 2))
    >>> mx.init.create('counting')('weight', weight)
    >>> weight
    array([[0., 1.],
           [2., 3.]])
    """

    # Suffixes of the names of vectors that have a neutral value, whatever the initializer.
    _NEUTRAL = {"bias": 0.0, "beta": 0.0, "mean": 0.0, "gamma": 1.0, "var": 1.0}

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Any = None

    def set_verbosity(self, verbose: bool = False, print_func: Any = None) -> Initializer:
        """Report each array that is filled.

        Parameters
        ----------
        verbose : bool
        print_func : callable of an array returning str, optional
            What to print about the values; by default their root mean square.

        Returns
        -------
        Initializer
            This object.
        """
        self._verbose = verbose
        self._print_func = print_func
        return self

    def dumps(self) -> str:
        """The initializer as JSON text that `create` takes.

        Returns
        -------
        str
            A list of the name and the arguments.
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._kwargs == getattr(other, "_kwargs", None)

    def __hash__(self) -> int:
        return hash((type(self), repr(sorted(self._kwargs.items()))))

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({arguments})"

    def __call__(self, desc: str, arr: ndarray) -> None:
        """Fill an array.

        Parameters
        ----------
        desc : InitDesc or str
            Name of the array.
        arr : ndarray, any shape, floating dtype
            Overwritten.

        Raises
        ------
        TypeError
            If `desc` is not a string.
        ValueError
            If the initializer cannot fill an array of this shape.
        """
        if not isinstance(desc, str):
            raise TypeError(f"`desc` must be an InitDesc or a str, found {type(desc).__name__}")
        own = desc.attrs.get("__init__") if isinstance(desc, InitDesc) else None
        if own is not None:
            create(own)._init_weight(desc, arr)
        else:
            self._init_by_name(desc, arr)
        if self._verbose:
            shown = self._print_func(arr) if self._print_func else _root_mean_square(arr)
            print(f"initialized {desc} with {self!r}: {shown}")

    def _init_by_name(self, name: str, arr: ndarray) -> None:
        for suffix, value in self._NEUTRAL.items():
            if name.endswith(suffix):
                arr[:] = value
                return
        self._init_weight(name, arr)

    def _init_weight(self, name: str, arr: ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _init_weight, needed for {name!r}")


def _root_mean_square(arr: ndarray) -> str:
    values = arr.asnumpy().astype("float64")
    return f"root mean square {math.sqrt(float((values * values).mean())) if values.size else 0.0:g}"


InitializerLike = Initializer | str

_Class = TypeVar("_Class", bound=type[Initializer])
_register = registry.get_register_func(Initializer, "initializer")
_alias = registry.get_alias_func(Initializer, "initializer")
_create = registry.get_create_func(Initializer, "initializer")


def register(klass: _Class) -> _Class:
    """Class decorator that makes an initializer known to `create` under its name in lower case.

    Parameters
    ----------
    klass : subclass of Initializer

    Returns
    -------
    class
        `klass`.

    Raises
    ------
    TypeError
        If `klass` is no subclass of `Initializer`.

    Examples
    --------
    >>> @mx.init.register
    ... class Halves(mx.init.Initializer):
    ...     def _init_weight(self, name, array):
    ...         array[...] = 0.5
    >>> weight = np.zeros(2)
    >>> mx.init.create('halves')('weight', weight)
    >>> weight
    array([0.5, 0.5])
    """
    _register(klass)
    return klass


def create(init: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an initializer from its name.

    Parameters
    ----------
    init : str, dict, Initializer or callable
        A name such as ``"xavier"``; JSON text made by `Initializer.dumps`; a mapping with the name under
        ``"initializer"`` and the arguments; or something that is an initializer already and is returned.
    *args, **kwargs
        Arguments of the class, if a name is given.

    Returns
    -------
    Initializer

    Raises
    ------
    ValueError
        If there is no initializer of that name, or arguments come with something that is an initializer already.

    Examples
    --------
    >>> from mxnet import initializer
    >>> initializer.create("normal", sigma=0.1)
    Normal(sigma=0.1)
    """
    if isinstance(init, str | dict):
        return _create(init, *args, **kwargs)
    if args or kwargs:
        raise ValueError("arguments are taken only with the name of an initializer")
    return init


def _sample_dtype(arr: ndarray) -> str:
    """Random numbers are drawn in float64 for float64 arrays, else in float32 and rounded by the assignment."""
    return "float64" if dtype_name(arr.dtype) == "float64" else "float32"


def _fill_uniform(arr: ndarray, scale: float) -> None:
    arr[:] = np.random.uniform(-scale, scale, size=arr.shape, dtype=_sample_dtype(arr))


def _fill_normal(arr: ndarray, sigma: float) -> None:
    arr[:] = np.random.normal(0.0, sigma, size=arr.shape, dtype=_sample_dtype(arr))


@_alias("zeros")
@register
class Zero(Initializer):
    """Zeros.

    Examples
    --------
    >>> weight = np.ones(2)
    >>> mx.init.Zero()('weight', weight)
    >>> weight
    array([0., 0.])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: ndarray) -> None:
        arr[:] = 0


@_alias("ones")
@register
class One(Initializer):
    """Ones.

    Examples
    --------
    >>> weight = np.zeros(2)
    >>> mx.init.One()('weight', weight)
    >>> weight
    array([1., 1.])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: ndarray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """One given value.

    Parameters
    ----------
    value : float or array_like
        A number, or values of the shape of the array to fill.

    Examples
    --------
    >>> weight = np.zeros(3)
    >>> mx.init.Constant(0.5)('weight', weight)
    >>> weight
    array([0.5, 0.5, 0.5])
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, name: str, arr: ndarray) -> None:
        arr[:] = self.value

    def dumps(self) -> str:
        """The initializer as JSON text that `create` takes; an array is written as nested lists.

        Returns
        -------
        str
            A list of the name and the arguments.

        Examples
        --------
        >>> mx.init.Constant(0.5).dumps()
        '["constant", {"value": 0.5}]'
        """
        value = self.value
        if hasattr(value, "tolist"):
            value = value.tolist()
        return json.dumps([type(self).__name__.lower(), {"value": value}])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.dumps() == other.dumps()

    def __hash__(self) -> int:
        return hash(self.dumps())


@register
class Uniform(Initializer):
    """Uniform in ``[-scale, scale)``.

    Parameters
    ----------
    scale : float

    Examples
    --------
    >>> np.random.seed(1)
    >>> weight = np.zeros(10000)
    >>> mx.init.Uniform(0.5)('weight', weight)
    >>> round(float(weight.max()), 2), round(float(weight.min()), 2)
    (0.5, -0.5)
    """

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: str, arr: ndarray) -> None:
        _fill_uniform(arr, self.scale)


@_alias("gaussian")
@register
class Normal(Initializer):
    """Normal with mean 0.

    Parameters
    ----------
    sigma : float
        Standard deviation.

    Examples
    --------
    >>> np.random.seed(1)
    >>> weight = np.zeros((400, 400))
    >>> mx.init.Normal(0.1)('weight', weight)
    >>> round(float(weight.std()), 2)
    0.1
    """

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: str, arr: ndarray) -> None:
        _fill_normal(arr, self.sigma)


@register
class Orthogonal(Initializer):
    """An orthogonal matrix, scaled; further axes are flattened into the second.

    Parameters
    ----------
    scale : float
        Length of the rows (or of the columns, if there are fewer of them).
    rand_type : {"uniform", "normal"}
        Distribution of the random matrix that is made orthogonal.

    Raises
    ------
    ValueError
        If `rand_type` is unknown.

    Notes
    -----
    Source: A. M. Saxe, J. L. McClelland and S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep
    linear neural networks", 2013.

    Examples
    --------
    >>> np.random.seed(1)
    >>> weight = np.zeros((3, 3))
    >>> mx.init.Orthogonal(scale=1.0)('weight', weight)
    >>> np.abs((weight @ weight.T).round(3))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        if rand_type not in ("uniform", "normal"):
            raise ValueError(f"`rand_type` must be 'uniform' or 'normal', found {rand_type!r}")
        super().__init__(scale=scale, rand_type=rand_type)
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: str, arr: ndarray) -> None:
        rows = arr.shape[0]
        columns = math.prod(arr.shape[1:])
        if self.rand_type == "uniform":
            sample = np.random.uniform(-1.0, 1.0, size=(rows, columns), dtype="float64")
        else:
            sample = np.random.normal(0.0, 1.0, size=(rows, columns), dtype="float64")
        u, _, v = onp.linalg.svd(sample.asnumpy(), full_matrices=False)
        matrix = u if u.shape == (rows, columns) else v
        arr[:] = np.array((self.scale * matrix).reshape(arr.shape), dtype=_sample_dtype(arr))


@register
class Xavier(Initializer):
    """Random values whose variance follows from the numbers of inputs and outputs of a layer.

    Parameters
    ----------
    rnd_type : {"uniform", "gaussian"}
    factor_type : {"avg", "in", "out"}
        Divide by the number of inputs, of outputs, or by their mean.
    magnitude : float
        The uniform bound, or the standard deviation, is ``sqrt(magnitude / factor)``.

    Raises
    ------
    ValueError
        If `rnd_type` or `factor_type` is unknown.

    Notes
    -----
    Source: X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.

    Examples
    --------
    >>> np.random.seed(1)
    >>> weight = np.zeros((100, 200))
    >>> mx.init.Xavier()('weight', weight)
    >>> round(float(weight.max()), 3)  # sqrt(3 / 150)
    0.141
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        if rnd_type not in ("uniform", "gaussian"):
            raise ValueError(f"`rnd_type` must be 'uniform' or 'gaussian', found {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise ValueError(f"`factor_type` must be 'avg', 'in' or 'out', found {factor_type!r}")
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: ndarray) -> None:
        shape = arr.shape
        if len(shape) < 2:
            raise ValueError(f"{type(self).__name__} needs at least 2 axes, but {str(name)!r} has shape {shape}")
        area = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * area, shape[0] * area
        factor = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = math.sqrt(self.magnitude / max(factor, 1))
        if self.rnd_type == "uniform":
            _fill_uniform(arr, scale)
        else:
            _fill_normal(arr, scale)


@_alias("msra")
@register
class MSRAPrelu(Xavier):
    """Normal values for layers that are followed by (parametric) rectifiers.

    Parameters
    ----------
    factor_type : {"avg", "in", "out"}
        See `Xavier`.
    slope : float
        Slope of the rectifier for negative input.

    Notes
    -----
    Source: K. He, X. Zhang, S. Ren and J. Sun, "Delving Deep into Rectifiers", 2015, equation 15.

    Examples
    --------
    >>> np.random.seed(1)
    >>> weight = np.zeros((400, 400))
    >>> mx.init.MSRAPrelu(factor_type='in', slope=0.0)('weight', weight)
    >>> round(float(weight.std()), 3)  # sqrt(2 / 400)
    0.071
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Weights of a transposed convolution that interpolates bilinearly: the same tent over the last two axes.

    Examples
    --------
    >>> weight = np.zeros((1, 1, 4, 4))
    >>> mx.init.Bilinear()('weight', weight)
    >>> weight[0, 0, 1]
    array([0.1875, 0.5625, 0.5625, 0.1875])
    """

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: ndarray) -> None:
        if len(arr.shape) < 2:
            raise ValueError(f"Bilinear needs at least 2 axes, but {str(name)!r} has shape {arr.shape}")

        # The width sets the tent for both axes, so that square kernels are symmetric.
        half = math.ceil(arr.shape[-1] / 2.0)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)

        def tent(size: int) -> Any:
            return 1 - onp.abs(onp.arange(size) / half - centre)

        kernel = onp.outer(tent(arr.shape[-2]), tent(arr.shape[-1]))
        arr[:] = np.array(onp.broadcast_to(kernel, arr.shape).astype(_sample_dtype(arr)))


@register
class LSTMBias(Initializer):
    """Zeros, except for the forget gate, the second quarter of the vector.

    Parameters
    ----------
    forget_bias : float

    Examples
    --------
    >>> bias = np.ones(8)  # two numbers for each of the gates i, f, c, o
    >>> mx.init.LSTMBias(forget_bias=1.0)('lstm_bias', bias)
    >>> bias
    array([0., 0., 1., 1., 0., 0., 0., 0.])
    """

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_by_name(self, name: str, arr: ndarray) -> None:
        self._init_weight(name, arr)

    def _init_weight(self, name: str, arr: ndarray) -> None:
        if arr.shape[0] % 4:
            raise ValueError(f"LSTMBias needs a length divisible by 4, but {str(name)!r} has shape {arr.shape}")
        hidden = arr.shape[0] // 4
        arr[:] = 0
        arr[hidden : 2 * hidden] = self.forget_bias


@register
class RNNFused(Initializer):
    """The pieces of the packed vector of parameters of `npx.rnn`, each with its own initializer.

    Parameters
    ----------
    mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"}
    num_layers, state_size : int
    bidirectional : bool
    projection_size : int, optional
        Of the output of an LSTM.
    i2h_weight_initializer, h2h_weight_initializer, h2r_weight_initializer : Initializer or str, optional
    i2h_bias_initializer, h2h_bias_initializer : Initializer or str, optional
        By default what `set_initializer` was given, and without that ``Uniform()``, which sets biases to zero.

    Raises
    ------
    ValueError
        If `mode` is unknown or a size is out of range.

    Examples
    --------
    >>> packed = np.zeros(4 * 2 * (3 + 2) + 2 * 4 * 2)  # an LSTM from 3 to 2
    >>> mx.init.RNNFused('lstm', 1, 2, i2h_weight_initializer='ones', h2h_weight_initializer='zeros')('rnn', packed)
    >>> packed.sum().item()
    24.0
    """

    def __init__(
        self,
        mode: str,
        num_layers: int,
        state_size: int,
        bidirectional: bool = False,
        projection_size: int | None = None,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = None,
        h2h_bias_initializer: Any = None,
        h2r_weight_initializer: Any = None,
    ) -> None:
        super().__init__(
            mode=mode,
            num_layers=num_layers,
            state_size=state_size,
            bidirectional=bidirectional,
            projection_size=projection_size,
        )
        # Checks the arguments.
        packed_shapes(mode, num_layers, 1, state_size, bidirectional, projection_size)
        self._layout = (mode, num_layers, state_size, bidirectional, projection_size)
        self._own = {
            "i2h_weight": i2h_weight_initializer,
            "h2h_weight": h2h_weight_initializer,
            "h2r_weight": h2r_weight_initializer,
            "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer,
        }
        self._fallback: Any = Uniform()

    def set_initializer(self, init: InitializerLike) -> None:
        """Set the initializer of pieces that have none of their own.

        Parameters
        ----------
        init : Initializer or str
        """
        self._fallback = create(init)

    def _init_by_name(self, name: str, arr: ndarray) -> None:
        self._init_weight(name, arr)

    def _init_weight(self, name: str, arr: ndarray) -> None:
        mode, num_layers, state_size, bidirectional, projection_size = self._layout
        input_size = packed_input_size(arr.size, mode, num_layers, state_size, bidirectional, projection_size)
        start = 0
        for piece, shape in packed_shapes(mode, num_layers, input_size, state_size, bidirectional, projection_size):
            values = np.zeros(shape, dtype=arr.dtype, device=arr.device)
            own = self._own[piece.split("_", 1)[1]]
            self._fallback(InitDesc(piece, {} if own is None else {"__init__": own}), values)
            arr[start : start + values.size] = values.reshape((-1,))
            start += values.size


class Mixed:
    """Choose the initializer by the first pattern that is found in the name.

    Parameters
    ----------
    patterns : sequence of str
        Regular expressions, matched at the beginning of the name.
    initializers : sequence of Initializer
        One for each pattern.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> from mxnet import initializer
    >>> init = initializer.Mixed([".*bias", ".*"], [initializer.Zero(), initializer.Normal(0.1)])
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[InitializerLike]) -> None:
        if len(patterns) != len(initializers):
            raise ValueError(f"{len(patterns)} patterns for {len(initializers)} initializers")
        self.map = [(re.compile(pattern), create(init)) for pattern, init in zip(patterns, initializers, strict=True)]

    def __call__(self, name: str, arr: ndarray) -> None:
        """Fill an array.

        Parameters
        ----------
        name : InitDesc or str
        arr : ndarray
            Overwritten.

        Raises
        ------
        ValueError
            If no pattern matches.
        """
        for pattern, init in self.map:
            if pattern.match(name):
                init(name, arr)
                return
        raise ValueError(f"no pattern matches {str(name)!r}; add a pattern '.*' with the initializer for the rest")


class Load:
    """Copy values from a dictionary of arrays.

    Parameters
    ----------
    param : mapping of str to ndarray
        A prefix ``arg:`` or ``aux:`` of a name is dropped.
    default_init : Initializer, optional
        Fills what the dictionary lacks.
    verbose : bool
        Print what is copied and what is initialized.

    Examples
    --------
    >>> weight = np.zeros(2)
    >>> mx.init.Load({'w': np.array([1.0, 2.0])})('w', weight)
    >>> weight
    array([1., 2.])
    """

    def __init__(
        self, param: Mapping[str, ndarray], default_init: InitializerLike | None = None, verbose: bool = False
    ) -> None:
        self.param = {name.removeprefix("arg:").removeprefix("aux:"): value for name, value in param.items()}
        self.default_init = None if default_init is None else create(default_init)
        self.verbose = verbose

    def __call__(self, name: str, arr: ndarray) -> None:
        """Fill an array.

        Parameters
        ----------
        name : str
        arr : ndarray
            Overwritten.

        Raises
        ------
        ValueError
            If the stored array has another shape, or there is none and no `default_init`.
        """
        stored = self.param.get(name)
        if stored is not None:
            if stored.shape != arr.shape:
                raise ValueError(f"{str(name)!r} is stored with shape {stored.shape}, but shape {arr.shape} is needed")
            arr[:] = stored
        elif self.default_init is not None:
            self.default_init(name, arr)
        else:
            raise ValueError(f"no value for {str(name)!r} and no `default_init`")
        if self.verbose:
            print(f"{'loaded' if stored is not None else 'initialized'} {name}")
