"""`vectorize`: functions of numbers, applied to arrays."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import DTypeLike

from mxnet import _core
from mxnet._core import asarray, ndarray
from mxnet.numpy._broadcasting import broadcast_arrays, broadcast_shapes
from mxnet.numpy._dtypes import ScalarType

_np = _core.namespaces["numpy"]
_op = _core.namespaces["op"]

# The dtypes of NumPy's scalars, and the floating ones among them.
_DTYPES: dict[type, Any] = {scalar: numpy.dtype(scalar) for scalar in ScalarType if issubclass(scalar, numpy.generic)}
_FLOATS: dict[Any, type] = {numpy.dtype(scalar): scalar for scalar in (numpy.float32, numpy.float64)}

_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*")
Core = tuple[str, ...]


def _parse(signature: str) -> tuple[list[Core], list[Core]]:
    """Parses `(m,n),(n)->(m)` into names of the axes of inputs and outputs."""
    text = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    sides = [
        [tuple(filter(None, core.split(","))) for core in re.findall(r"\((.*?)\)", side)] for side in text.split("->")
    ]
    return sides[0], sides[1]


def _is_array(value: Any) -> bool:
    """Whether an argument has elements; other objects are passed to the function unchanged."""
    return isinstance(value, (bool, int, float, complex)) or hasattr(value, "__len__") or hasattr(value, "__array__")


def _scalar(x: ndarray, elements: list[Any]) -> Any:
    """The first element of an array as a NumPy scalar."""
    # bfloat16 is a string if no NumPy extension defines it.
    scalar = getattr(x.dtype, "type", None)
    return numpy.asarray(x.reshape(-1)[:1].asnumpy())[0] if scalar is None else scalar(elements[0])


def _column(results: Sequence[Any], dtype: Any) -> ndarray:
    """Results of single calls as an array of this dtype."""
    first, is_float = results[0], type(results[0]) is _FLOATS.get(dtype)
    # NumPy floats mixed with Python floats, as most functions return, need no common dtype.
    if is_float and {*map(type, results[1:])} <= {float}:
        return asarray([first.item(), *results[1:]], dtype)
    column: ndarray = _op["astype"](asarray(list(results)), dtype)
    return column


class vectorize:  # noqa: N801  # NumPy's name
    """A function of numbers that takes arrays, which are broadcast.

    Parameters
    ----------
    pyfunc : callable, optional
        Takes numbers, and arrays where `signature` says so. Without it the object is a decorator.
    otypes : str or list of dtype, optional
        Dtypes of the results; those of the first call's results if left out.
    doc : str, optional
        The docstring; that of `pyfunc` if left out.
    excluded : set of str or int, optional
        Names and positions of arguments that are passed on whole.
    cache : bool
        Whether the call that finds out about the dtypes is remembered. The function is called once for each element in
        either case.
    signature : str, optional
        Such as ``'(m,n),(n)->(m)'``: the axes that single calls take and give.

    Raises
    ------
    ValueError
        For signatures and dtypes that cannot be read; at the call, for axes that do not fit, and for arrays without
        elements if `otypes` is not given.
    TypeError
        At the call: if results are no numbers, or for a wrong number of arguments.

    Notes
    -----
    A loop in Python, for convenience. As in NumPy the first call gets NumPy's scalars, which tell the results' dtypes,
    the others get Python's numbers; so results have no gradient. With a signature calls get arrays, and results have
    one.

    Examples
    --------
    >>> import mxnet as mx
    >>> smaller = mx.np.vectorize(lambda a, b: a if a < b else b)
    >>> smaller([1, 5, 3], 4)
    array([1, 4, 3])
    >>> centred = mx.np.vectorize(lambda row: row - row.mean(), signature="(n)->(n)")
    >>> centred(mx.np.array([[1.0, 3.0], [2.0, 6.0]]))
    array([[-1.,  1.],
           [-2.,  2.]])
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any] | None = None,
        otypes: str | Iterable[DTypeLike] | None = None,
        doc: str | None = None,
        excluded: Iterable[str | int] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if pyfunc is not None and not callable(pyfunc):
            raise TypeError("vectorize: when used as a decorator, only accepts keyword arguments")
        self.pyfunc, self.cache, self.signature = pyfunc, cache, signature
        self.excluded = set(excluded or ())
        self.otypes = otypes if otypes is None or isinstance(otypes, str) else list(otypes)
        self._dtypes()
        self._core = None if signature is None else _parse(signature)
        self._doc = doc
        if pyfunc is not None:
            self._wrap(pyfunc)

    def _wrap(self, pyfunc: Callable[..., Any]) -> None:
        self.pyfunc = pyfunc
        functools.update_wrapper(self, pyfunc, updated=())
        self.__doc__ = pyfunc.__doc__ if self._doc is None else self._doc

    def _dtypes(self) -> list[Any] | None:
        if self.otypes is None:
            return None
        try:
            return [_core.result_type([one]) for one in self.otypes]
        except TypeError as error:
            raise ValueError(f"vectorize: invalid otype specified: {self.otypes!r}") from error

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with every element.

        Parameters
        ----------
        *args, **kwargs
            Arrays, but for the excluded arguments.

        Returns
        -------
        ndarray or tuple of ndarray
        """
        pyfunc = self.pyfunc
        if pyfunc is None:
            self._wrap(*args, **kwargs)
            return self
        positions = [i for i in range(len(args)) if i not in self.excluded and _is_array(args[i])]
        names = [name for name in kwargs if name not in self.excluded and _is_array(kwargs[name])]

        def call(*elements: Any) -> Any:
            given, named = list(args), dict(kwargs)
            for i, element in zip(positions, elements, strict=False):
                given[i] = element
            named.update(zip(names, elements[len(positions) :], strict=True))
            return pyfunc(*given, **named)

        arrays = [asarray(args[i]) for i in positions] + [asarray(kwargs[name]) for name in names]
        # If every argument has elements, no other arguments must be inserted.
        of_elements = pyfunc if len(positions) == len(args) and not kwargs else call
        if self._core is None:
            return self._elements(of_elements, arrays)
        return self._lines(of_elements, arrays, *self._core)

    def _elements(self, call: Callable[..., Any], arrays: list[ndarray]) -> Any:
        dtypes = self._dtypes()
        if len(arrays) > 1:
            arrays = list(broadcast_arrays(*arrays))
        shape = arrays[0].shape if arrays else ()
        if 0 in shape:
            if dtypes is None:
                raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
            empty = [_np["empty"](shape, dtype=dtype) for dtype in dtypes]
            return empty[0] if len(empty) == 1 else tuple(empty)
        columns = [x.reshape(-1).tolist() for x in arrays]
        # NumPy scalars have a dtype, so a function of small integers returns small integers.
        first = call(*map(_scalar, arrays, columns))
        several = isinstance(first, tuple) if dtypes is None else len(dtypes) > 1
        rows = iter(zip(*columns, strict=True))
        next(rows, None)
        results = [first, *itertools.starmap(call, rows)]
        outputs = list(zip(*results, strict=True)) if several else [results]
        if dtypes is None:
            dtypes = [_DTYPES.get(type(output[0])) or asarray(output[0]).dtype for output in outputs]
        if len(dtypes) != len(outputs):
            raise ValueError(f"vectorize: `otypes` has {len(dtypes)} dtypes, the function gives {len(outputs)} results")
        made = [_column(output, dtype).reshape(shape) for output, dtype in zip(outputs, dtypes, strict=True)]
        return tuple(made) if several else made[0]

    def _lines(self, call: Callable[..., Any], arrays: list[ndarray], inputs: list[Core], outputs: list[Core]) -> Any:
        if len(arrays) != len(inputs):
            raise TypeError(f"wrong number of positional arguments: expected {len(inputs)!r}, got {len(arrays)!r}")
        sizes: dict[str, int] = {}
        loops = []
        for array, core in zip(arrays, inputs, strict=True):
            if array.ndim < len(core):
                raise ValueError(
                    f"{array.ndim}-dimensional argument does not have enough dimensions for all core dimensions {core}"
                )
            loops.append(array.shape[: array.ndim - len(core)])
            self._measure(sizes, array.shape[array.ndim - len(core) :], core)
        loop = broadcast_shapes(*loops)
        dtypes = self._dtypes()
        if math.prod(loop) == 0:
            if dtypes is None:
                raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
            if any(name not in sizes for core in outputs for name in core):
                raise ValueError(
                    "cannot call `vectorize` with a signature including new output dimensions on size 0 inputs"
                )
            shapes = [(*loop, *(sizes[name] for name in core)) for core in outputs]
            empty = [_np["empty"](shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
            return empty[0] if len(empty) == 1 else tuple(empty)
        spread = [
            _np["broadcast_to"](array, (*loop, *array.shape[array.ndim - len(core) :]))
            for array, core in zip(arrays, inputs, strict=True)
        ]
        columns: list[list[ndarray]] = [[] for _ in outputs]
        for index in numpy.ndindex(*loop):
            results = call(*(array[index] for array in spread))
            results = results if isinstance(results, tuple) else (results,)
            if len(results) != len(outputs):
                raise ValueError(
                    f"wrong number of outputs from pyfunc: expected {len(outputs)!r}, got {len(results)!r}"
                )
            for column, result, core in zip(columns, results, outputs, strict=True):
                column.append(asarray(result))
                self._measure(sizes, column[-1].shape, core)
        made = [_np["stack"](column).reshape((*loop, *column[0].shape)) for column in columns]
        if dtypes is not None:
            made = [_op["astype"](array, dtype) for array, dtype in zip(made, dtypes, strict=True)]
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _measure(sizes: dict[str, int], shape: tuple[int, ...], core: Core) -> None:
        """Record the sizes of named axes, and check that they agree."""
        if len(shape) != len(core):
            raise ValueError(f"a result of {len(shape)} axes does not have the core dimensions {core!r}")
        for name, size in zip(core, shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"inconsistent size for core dimension {name!r}: {size} vs {sizes[name]}")
