"""`__array_namespace_info__` of the array API standard."""

from __future__ import annotations

from typing import Any

from mxnet import _core
from mxnet.device import Device, current_device, num_gpus
from mxnet.numpy import _dtypes

_STANDARD = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


class __array_namespace_info__:  # noqa: N801  # the standard's name
    """Capabilities of the namespace (array API standard 2025.12).

    Examples
    --------
    >>> import mxnet as mx
    >>> mx.np.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What the library can do.

        Returns
        -------
        dict
            'boolean indexing' (True), 'data-dependent shapes' (True), 'max dimensions' (64).

        Examples
        --------
        >>> np.__array_namespace_info__().capabilities()['max dimensions']
        64
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The default device of new arrays.

        Returns
        -------
        Device

        Examples
        --------
        >>> np.__array_namespace_info__().default_device()
        cpu(0)
        """
        return current_device()

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, Any]:
        """The default dtypes of new arrays.

        Parameters
        ----------
        device : Device, optional
            They are the same on all.

        Returns
        -------
        dict
            'real floating', 'complex floating', 'integral', 'indexing'.

        Raises
        ------
        ValueError
            If there is no such device.

        Examples
        --------
        >>> np.__array_namespace_info__().default_dtypes()['integral']
        dtype('int64')
        """
        self._check(device)
        kinds = {"real floating": "f", "complex floating": "c", "integral": "i", "indexing": "i"}
        return {name: _core.default_dtype(kind) for name, kind in kinds.items()}

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """The standard's dtypes by name.

        Parameters
        ----------
        device : Device, optional
            They are the same on all.
        kind : str or tuple of str, optional
            Only those of these kinds, named as for `isdtype`.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            If there is no such kind or device.

        Examples
        --------
        >>> sorted(np.__array_namespace_info__().dtypes(kind='signed integer'))
        ['int16', 'int32', 'int64', 'int8']
        """
        self._check(device)
        kinds = _STANDARD if kind is None else (kind,) if isinstance(kind, str) else tuple(kind)
        for one in kinds:
            if one not in (*_STANDARD, "integral", "numeric"):
                raise ValueError(f"dtypes: there is no kind {one!r}")
        return _dtypes.of_kinds(kinds)

    def devices(self) -> list[Device]:
        """The devices that arrays can be made on.

        Returns
        -------
        list of Device

        Examples
        --------
        >>> np.__array_namespace_info__().devices()[0]
        cpu(0)
        """
        return [Device("cpu", 0), *(Device("gpu", i) for i in range(num_gpus()))]

    def _check(self, device: Device | str | None) -> None:
        if isinstance(device, str):
            known = ["cpu", *map(str, self.devices())]
            if device not in known:
                raise ValueError(f"there is no device {device!r}, but {', '.join(known)}")
        elif device is not None and device.device_type != "cpu" and device not in self.devices():
            raise ValueError(f"there is no device {device}")
