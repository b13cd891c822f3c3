"""What this build and this machine have."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar, NamedTuple

from mxnet import _core

__all__ = ["Backend", "Feature", "Features", "Served", "backends", "feature_list", "features", "served"]


class Feature(NamedTuple):
    """A feature, and whether it is there.

    Examples
    --------
    >>> mx.runtime.Feature('CUDA', False)
    ✖ CUDA
    """

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


class Features(OrderedDict[str, Feature]):
    """All features by name.

    Examples
    --------
    >>> mx.runtime.Features().is_enabled('INT64_TENSOR_SIZE')
    True
    """

    instance: ClassVar[Features | None] = None

    def __new__(cls) -> Features:
        """The one object there is: features do not change while the program runs."""
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there.

        Parameters
        ----------
        feature_name : str
            In capitals or not.

        Returns
        -------
        bool

        Raises
        ------
        RuntimeError
            If there is no feature of that name.
        """
        found = self.get(feature_name.upper())
        if found is None:
            raise RuntimeError(f"there is no feature {feature_name!r}; there are {', '.join(self)}")
        return found.enabled

    def __repr__(self) -> str:
        return f"[{', '.join(map(repr, self.values()))}]"


class Backend(NamedTuple):
    """A device or a library that can compute; which of them do is chosen while the program runs."""

    name: str
    kind: str  # 'device', 'blas', 'cuda' or 'module'
    is_loaded: bool
    version: str
    reason: str  # why it is not loaded, and how to get it; empty if it is
    path: str = ""  # the file, of a library that was found
    serves: tuple[str, ...] = ()  # what it computes now: names of operators, or 'matrix products'


def feature_list() -> list[Feature]:
    """All features.

    Returns
    -------
    list of Feature
    """
    return [Feature(name, enabled) for name, enabled in _core.features()]


def features() -> Features:
    """All features by name.

    Returns
    -------
    Features

    Examples
    --------
    >>> mx.runtime.features().is_enabled('CPU_SSE4_2') in (True, False)
    True
    """
    return Features()


def backends() -> list[Backend]:
    """The kinds of devices of this process, and the libraries that compute.

    NVIDIA's driver and compiler are looked for: where the system has its libraries, then in pip's packages
    (``nvidia-cuda-nvrtc``, or ``nvidia-cuda-nvrtc-cu12`` for CUDA 12), then in ``CUDA_HOME`` and ``/usr/local/cuda``.
    Libraries that multiply matrices are looked for in pip's packages (``scipy-openblas32``, ``onednn-cpu-gomp``), then
    where the system has its libraries. They are opened when `mx.config.blas` names them, or is ``"auto"``: then
    OpenBLAS computes if it can be opened.

    Returns
    -------
    list of Backend

    Examples
    --------
    >>> [backend.name for backend in mx.runtime.backends() if backend.is_loaded][:1]
    ['cpu']
    >>> [backend.name for backend in mx.runtime.backends() if 'matrix products' in backend.serves]
    ['builtin']
    """
    found = []
    libraries = [
        Backend(name, "cuda", path is not None, ".".join(map(str, version or ())), reason, path or "")
        for name, path, version, reason in _core.cuda_libraries()
    ]
    for name, _ in _core.device_kinds():
        missing = name == "gpu" and _core.num_devices(name) == 0
        reason = next((library.reason for library in libraries if library.name == "driver"), "") if missing else ""
        if missing and not reason:
            reason = "the driver finds no device"
        found.append(Backend(name, "device", not missing, "" if missing else _core.__version__, reason))
    blas = _core.blas_libraries()
    own = [("builtin", True, None, _core.__version__, "", not any(serves for *_, serves in blas))]
    for name, is_loaded, path, version, reason, serves in own + blas:
        products = ("matrix products",) if serves else ()
        found.append(Backend(name, "blas", is_loaded, version, reason, path or "", products))
    found += libraries
    by_module: dict[str, list[str]] = {}
    for op, _, _, module in _core.served_operators():
        by_module.setdefault(module, []).append(op)
    for name, version, *_ in _core.loaded_modules():
        found.append(Backend(name, "module", True, version, "", serves=tuple(by_module.get(name, ()))))
    return found


class Served(NamedTuple):
    """A kernel of a module: it is asked before those of lower priority; the built-in one has 0."""

    op: str
    device: str
    priority: int
    module: str


def served() -> list[Served]:
    """Operators that modules compute.

    Returns
    -------
    list of Served
        Operators that are not in it are computed by the built-in kernels.

    Examples
    --------
    >>> mx.runtime.served()
    []
    """
    return [Served(*found) for found in _core.served_operators()]
