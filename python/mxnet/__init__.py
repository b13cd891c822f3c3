"""A tensor engine: arrays that behave like NumPy's, automatic differentiation, and Gluon to build and train networks.

>>> import mxnet as mx
>>> x = mx.np.ones((2, 3))
>>> (x * 2).sum().item()
12.0
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Written as `x as x`: names that others may import from here.
    from mxnet import amp as amp
    from mxnet import autograd as autograd
    from mxnet import base as base
    from mxnet import callback as callback
    from mxnet import context as context
    from mxnet import contrib as contrib
    from mxnet import device as device
    from mxnet import dlpack as dlpack
    from mxnet import engine as engine
    from mxnet import error as error
    from mxnet import gluon as gluon
    from mxnet import graph as graph
    from mxnet import image as image
    from mxnet import initializer as initializer
    from mxnet import io as io
    from mxnet import kvstore as kvstore
    from mxnet import library as library
    from mxnet import log as log
    from mxnet import lr_scheduler as lr_scheduler
    from mxnet import numpy as numpy
    from mxnet import numpy_extension as numpy_extension
    from mxnet import onnx as onnx
    from mxnet import operator as operator
    from mxnet import optimizer as optimizer
    from mxnet import profiler as profiler
    from mxnet import ragged as ragged
    from mxnet import random as random
    from mxnet import recordio as recordio
    from mxnet import registry as registry
    from mxnet import runtime as runtime
    from mxnet import sparse as sparse
    from mxnet import test_utils as test_utils
    from mxnet import util as util
    from mxnet import visualization as visualization
    from mxnet._config import config as config
    from mxnet._jit import InputSpec as InputSpec
    from mxnet._jit import jit as jit
    from mxnet.base import MXNetError as MXNetError
    from mxnet.device import Device as Device
    from mxnet.device import cpu as cpu
    from mxnet.device import current_device as current_device
    from mxnet.device import gpu as gpu
    from mxnet.device import num_gpus as num_gpus
    from mxnet.util import is_np_array as is_np_array
    from mxnet.util import is_np_default_dtype as is_np_default_dtype
    from mxnet.util import is_np_shape as is_np_shape
    from mxnet.util import np_array as np_array
    from mxnet.util import np_default_dtype as np_default_dtype
    from mxnet.util import np_shape as np_shape
    from mxnet.util import set_np_shape as set_np_shape
    from mxnet.util import use_np as use_np
    from mxnet.util import use_np_array as use_np_array
    from mxnet.util import use_np_default_dtype as use_np_default_dtype
    from mxnet.util import use_np_shape as use_np_shape

    Context = Device
    img = image
    init = initializer
    kv = kvstore
    np = numpy
    npx = numpy_extension
    rnd = random
    viz = visualization
    waitall = engine.wait_all
    current_context = current_device
    __version__: str

# Public names and where they live. They are imported at first use, so that `import mxnet` takes little time.
_MODULES = {
    "amp": "mxnet.amp",
    "autograd": "mxnet.autograd",
    "base": "mxnet.base",
    "callback": "mxnet.callback",
    "context": "mxnet.context",
    "contrib": "mxnet.contrib",
    "device": "mxnet.device",
    "dlpack": "mxnet.dlpack",
    "engine": "mxnet.engine",
    "error": "mxnet.error",
    "gluon": "mxnet.gluon",
    "graph": "mxnet.graph",
    "image": "mxnet.image",
    "img": "mxnet.image",
    "init": "mxnet.initializer",
    "initializer": "mxnet.initializer",
    "io": "mxnet.io",
    "kv": "mxnet.kvstore",
    "kvstore": "mxnet.kvstore",
    "library": "mxnet.library",
    "log": "mxnet.log",
    "lr_scheduler": "mxnet.lr_scheduler",
    "np": "mxnet.numpy",
    "npx": "mxnet.numpy_extension",
    "numpy": "mxnet.numpy",
    "numpy_extension": "mxnet.numpy_extension",
    "onnx": "mxnet.onnx",
    "operator": "mxnet.operator",
    "optimizer": "mxnet.optimizer",
    "profiler": "mxnet.profiler",
    "ragged": "mxnet.ragged",
    "random": "mxnet.random",
    "recordio": "mxnet.recordio",
    "registry": "mxnet.registry",
    "rnd": "mxnet.random",
    "runtime": "mxnet.runtime",
    "sparse": "mxnet.sparse",
    "test_utils": "mxnet.test_utils",
    "util": "mxnet.util",
    "visualization": "mxnet.visualization",
    "viz": "mxnet.visualization",
}
_ATTRIBUTES = {
    "Device": ("mxnet.device", "Device"),
    "MXNetError": ("mxnet.base", "MXNetError"),
    "__version__": ("mxnet._core", "__version__"),
    "config": ("mxnet._config", "config"),
    "cpu": ("mxnet.device", "cpu"),
    "current_device": ("mxnet.device", "current_device"),
    "gpu": ("mxnet.device", "gpu"),
    "is_np_array": ("mxnet.util", "is_np_array"),
    "is_np_default_dtype": ("mxnet.util", "is_np_default_dtype"),
    "is_np_shape": ("mxnet.util", "is_np_shape"),
    "InputSpec": ("mxnet._jit", "InputSpec"),
    "jit": ("mxnet._jit", "jit"),
    "np_array": ("mxnet.util", "np_array"),
    "np_default_dtype": ("mxnet.util", "np_default_dtype"),
    "np_shape": ("mxnet.util", "np_shape"),
    "num_gpus": ("mxnet.device", "num_gpus"),
    "set_np_shape": ("mxnet.util", "set_np_shape"),
    "use_np": ("mxnet.util", "use_np"),
    "use_np_array": ("mxnet.util", "use_np_array"),
    "use_np_default_dtype": ("mxnet.util", "use_np_default_dtype"),
    "use_np_shape": ("mxnet.util", "use_np_shape"),
    "waitall": ("mxnet.engine", "wait_all"),
}

# Older names, which warn at each use and so are never kept.
_OLD = {"Context": "Device", "current_context": "current_device"}

__all__ = [*_MODULES, *_ATTRIBUTES]  # noqa: PLE0604  # derived, so that no name is written twice


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = importlib.import_module(_MODULES[name])
    elif name in _ATTRIBUTES:
        module, attribute = _ATTRIBUTES[name]
        found = getattr(importlib.import_module(module), attribute)
    elif name in _OLD:
        renamed = importlib.import_module("mxnet._renamed")
        return renamed.old_attribute("mxnet", name, f"mxnet.{_OLD[name]}", __getattr__(_OLD[name]))
    else:
        raise importlib.import_module("mxnet._renamed").removed("mxnet", name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _RemovedModules:
    """Finder of modules, the last that is asked: importing a module of MXNet 2 that is gone says what to use."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> Any:
        if name.startswith("mxnet."):
            return importlib.import_module("mxnet._renamed").RemovedModuleLoader.spec(name)
        return None


def _is_finder(finder: object) -> bool:
    """Whether it is that class, or the same of an import before this one."""
    return (getattr(finder, "__module__", ""), getattr(finder, "__qualname__", "")) == (__name__, "_RemovedModules")


if not any(map(_is_finder, sys.meta_path)):
    sys.meta_path.append(_RemovedModules)
