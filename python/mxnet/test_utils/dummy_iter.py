"""An iterator that needs no time."""

from __future__ import annotations

from typing import Any

from mxnet.io import DataIter

__all__ = ["DummyIter"]


class DummyIter(DataIter):
    """The first batch of another iterator, again and again without an end.

    Parameters
    ----------
    real_iter : DataIter

    Raises
    ------
    StopIteration
        If `real_iter` is at its end.

    Examples
    --------
    >>> batches = mx.test_utils.DummyIter(mx.io.NDArrayIter(np.arange(4), batch_size=2))
    >>> [next(batches)[0].tolist() for _ in range(3)]
    [[0, 1], [0, 1], [0, 1]]
    """

    def __init__(self, real_iter: DataIter) -> None:
        super().__init__(real_iter.batch_size)
        self.real_iter = real_iter
        for name in ("provide_data", "provide_label"):
            if hasattr(real_iter, name):
                setattr(self, name, getattr(real_iter, name))
        self.the_batch = next(real_iter)
        self._parts = real_iter.getdata(), real_iter.getlabel(), real_iter.getindex(), real_iter.getpad()

    def __iter__(self) -> DummyIter:
        """The iterator itself."""
        return self

    def reset(self) -> None:
        """Do nothing: there is no other batch to go back from."""

    def next(self) -> tuple[Any, ...]:
        return self.the_batch

    def iter_next(self) -> bool:
        return True

    def getdata(self) -> Any:
        return self._parts[0]

    def getlabel(self) -> Any:
        return self._parts[1]

    def getindex(self) -> Any:
        return self._parts[2]

    def getpad(self) -> int | None:
        pad: int | None = self._parts[3]
        return pad
