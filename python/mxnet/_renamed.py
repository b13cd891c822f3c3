"""Deprecated spellings of public names: arguments, methods and module attributes.

Every older spelling that still works goes through one of the functions here, and gives a DeprecationWarning that names
the new one. Names that are gone answer with an AttributeError that says what to use.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn, TypeVar

from mxnet._caller_warning import warn_caller

__all__ = [
    "REMOVED",
    "RemovedAttribute",
    "RemovedModuleLoader",
    "attribute_finder",
    "check_removed_keywords",
    "old_attribute",
    "old_function",
    "old_keywords",
    "old_method",
    "removed",
    "removed_keywords",
]

F = TypeVar("F", bound=Callable[..., Any])

# Names that older programs use and that do not exist, by their module, and what does their work.
_NUMPY = "arrays are `mx.np.ndarray`, made and computed with by `mx.np` and `mx.npx`"
_GRAPHS = "networks are `mx.gluon.HybridBlock`s"
_TRAINING = "training is `mx.gluon.Trainer`, or the loop `mx.gluon.contrib.estimator.Estimator`"
_NAMES = "parameters are named by the attributes of blocks, as `mx.gluon.Block.collect_params` shows them"
_PINNED = "`mx.cpu()`; copies to a GPU pin memory by themselves"
_CHECKPOINT = "`CheckpointHandler` of `mx.gluon.contrib.estimator`, or `Block.save_parameters` in a loop of one's own"
_SERVERS = "`mx.kvstore.create('dist_async')` starts a server in each process, without processes of its own"
_LOCAL_FILES = "there is no store of files to download from; `pretrained=True` and data sets read local files"
REMOVED: dict[str, dict[str, str]] = {
    "mxnet": {
        "nd": _NUMPY,
        "ndarray": _NUMPY,
        "sym": _GRAPHS,
        "symbol": _GRAPHS,
        "mod": _TRAINING,
        "module": _TRAINING,
        "model": _TRAINING,
        "rnn": "recurrent layers and cells are in `mx.gluon.rnn`",
        "AttrScope": _NAMES,
        "attribute": _NAMES,
        "name": _NAMES,
        "cpu_pinned": _PINNED,
        "metric": "metrics are in `mx.gluon.metric`",
        **dict.fromkeys(
            ("mon", "monitor"), "`Block.register_op_hook` sees the outputs of operators, `mx.profiler` their times"
        ),
        "th": "`mx.np.from_dlpack` takes tensors of PyTorch",
        "kvstore_server": _SERVERS,
        "executor": "`hybridize` or `mx.jit` make compiled graphs, which are called like functions",
        "libinfo": "the library is the module `mxnet._core`; `mx.runtime.Features` lists what it was built with",
        "misc": "schedules are in `mx.lr_scheduler`",
        "notebook": "`mx.callback.ProgressBar` and the handlers of `mx.gluon.contrib.estimator` show progress",
        "rtc": "`mx.library` loads kernels for devices from a module",
    },
    "mxnet.device": {"cpu_pinned": _PINNED},
    "mxnet.context": {"cpu_pinned": _PINNED},
    "mxnet.autograd": {"get_symbol": "`mx.jit` and `hybridize` trace functions into graphs, see `mx.graph`"},
    "mxnet.callback": {
        "LogValidationMetricsCallback": "`ValidationHandler` of `mx.gluon.contrib.estimator` logs them",
        "do_checkpoint": _CHECKPOINT,
        "log_train_metric": "`LoggingHandler` of `mx.gluon.contrib.estimator`, or `Speedometer` in a loop of one's own",
        "module_checkpoint": _CHECKPOINT,
    },
    "mxnet.contrib": {
        "amp": "it is `mx.amp`",
        "io": "`mx.io`, or a loop over a `mx.gluon.data.DataLoader`, which is an iterator itself",
        "ndarray": _NUMPY,
        "nd": _NUMPY,
        "onnx": "it is `mx.onnx`",
        "sym": _GRAPHS,
        "symbol": _GRAPHS,
    },
    "mxnet.gluon": {"tensor_types": "arrays have one class, `mx.np.ndarray`"},
    "mxnet.gluon.contrib": {
        "cnn": "`mx.gluon.nn.DeformableConvolution` and `mx.gluon.nn.ModulatedDeformableConvolution`",
        "nn": "its layers are in `mx.gluon.nn`",
        "rnn": "its cells are in `mx.gluon.rnn`",
    },
    "mxnet.gluon.metric": dict.fromkeys(("Caffe", "Torch"), "`mx.gluon.metric.Loss` averages any values"),
    "mxnet.gluon.model_zoo": {"model_store": _LOCAL_FILES},
    "mxnet.gluon.nn": {
        "BatchNormReLU": "`BatchNorm` and `Activation('relu')` become one operator in a compiled graph",
        "Concurrent": "`Concatenate`",
        "HybridConcurrent": "`HybridConcatenate`",
        "SparseEmbedding": "`Embedding` with `sparse_grad=True`",
    },
    "mxnet.gluon.utils": dict.fromkeys(("_get_repo_file_url", "_get_repo_url"), _LOCAL_FILES),
    "mxnet.image": {
        **dict.fromkeys(
            (
                *("Augmenter", "BrightnessJitterAug", "CastAug", "CenterCropAug", "ColorJitterAug"),
                *("ColorNormalizeAug", "ContrastJitterAug", "CreateAugmenter", "ForceResizeAug", "HorizontalFlipAug"),
                *("HueJitterAug", "LightingAug", "RandomCropAug", "RandomGrayAug", "RandomOrderAug"),
                *("RandomSizedCropAug", "ResizeAug", "SaturationJitterAug", "SequentialAug"),
            ),
            "augmenters are the transforms of `mx.gluon.data.vision.transforms`",
        ),
        "image": "its functions are in `mx.image`",
        "ImageIter": "`mx.gluon.contrib.data.vision.ImageDataLoader`",
        **dict.fromkeys(
            (
                *("CreateDetAugmenter", "CreateMultiRandCropAugmenter", "DetAugmenter", "DetBorrowAug"),
                *("DetHorizontalFlipAug", "DetRandomCropAug", "DetRandomPadAug", "DetRandomSelectAug", "ImageDetIter"),
            ),
            "`mx.gluon.contrib.data.vision.ImageBboxDataLoader` and the transforms beside it",
        ),
    },
    "mxnet.io": {
        "DataBatch": "batches are tuples of arrays, data first, then labels",
        "ImageDetRecordIter": "`mx.gluon.contrib.data.vision.ImageBboxDataLoader`",
        "ImageRecordInt8Iter": "`ImageRecordIter` with `dtype`",
        "ImageRecordIter_v1": "`ImageRecordIter`",
        "ImageRecordUInt8Iter": "`ImageRecordIter` with `dtype`",
        "ImageRecordUInt8Iter_v1": "`ImageRecordIter` with `dtype`",
        "LibSVMIter": "`sklearn.datasets.load_svmlight_file` and `mx.sparse.csr_matrix`",
    },
    "mxnet.kvstore": {
        "KVStoreServer": _SERVERS,
        **dict.fromkeys(
            ("BytePS", "Horovod"), "`dist_sync` adds up gradients over processes; `KVStoreBase.register` adds others"
        ),
    },
    "mxnet.operator": dict.fromkeys(("NDArrayOp", "NumpyOp", "PythonOp"), "`CustomOp` and `CustomOpProp`"),
    "mxnet.profiler": {
        "dump_profile": "`mx.profiler.dump`",
        "profiler_set_config": "`mx.profiler.set_config`",
        "profiler_set_state": "`mx.profiler.set_state`",
        "set_kvstore_handle": "there are no server processes: each process has a profiler of its own",
    },
    "mxnet.random": dict.fromkeys(
        (
            *("exponential", "gamma", "generalized_negative_binomial", "multinomial", "negative_binomial", "normal"),
            *("poisson", "randint", "randn", "shuffle", "uniform"),
        ),
        "samples are drawn by `mx.np.random` and `mx.npx.random`",
    ),
    "mxnet.test_utils": dict.fromkeys(
        ("check_symbolic_backward", "check_symbolic_forward", "same_symbol_structure"),
        "call the operator, and compare with `assert_almost_equal` and `check_numeric_gradient`",
    )
    | dict.fromkeys(
        ("download", "get_bz2_data", "get_cifar10", "get_mnist", "get_mnist_iterator", "get_mnist_ubyte"),
        "nothing is downloaded; `mx.gluon.data.vision` reads local files, and `Digits` ships with the package",
    ),
    "mxnet.util": {
        "reset_np": "`npx.set_np()` sets back what it had set",
        "set_flush_denorms": "small numbers are computed with as IEEE 754 says",
    },
    "mxnet.visualization": {"plot_network": "`mx.graph.Graph.plot` draws a graph, `print_summary` prints a table"},
}


def _warn(old: str, new: str) -> None:
    warn_caller(f"{old} is deprecated; use {new}", DeprecationWarning)


def old_keywords(**names: str) -> Callable[[F], F]:
    """Decorator: let a function take keyword arguments by an older name too.

    Parameters
    ----------
    **names : str
        Older name to the name in the signature, for example ``ctx="device"``.

    Returns
    -------
    decorator
        The function raises a TypeError if an argument is given by both names.

    Examples
    --------
    >>> import warnings
    >>> from mxnet._renamed import old_keywords
    >>> @old_keywords(ctx='device')
    ... def where(device=None):
    ...     return device
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore', DeprecationWarning)
    ...     where(ctx=mx.cpu(1))
    cpu(1)
    """

    def decorate(function: F) -> F:
        owner, _, name = function.__qualname__.rpartition(".")
        name = owner.rpartition(".")[2] if name == "__init__" else name

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                for old, new in names.items():
                    if old in kwargs:
                        if new in kwargs:
                            raise TypeError(f"{name}() got both `{new}` and its older name `{old}`")
                        _warn(f"argument `{old}` of {name}", f"`{new}`")
                        kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]  # functools.wraps keeps the signature

    return decorate


def old_method(old: str, method: Callable[..., Any], keywords: Mapping[str, str] | None = None) -> Callable[..., Any]:
    """A method under its older name.

    Parameters
    ----------
    old : str
    method : function
        Looked up again by its name at the call, so that what a subclass overrides is called.
    keywords : mapping of str to str, optional
        As for `old_keywords`.

    Returns
    -------
    function
        To be assigned in the class body.
    """
    new = method.__name__
    translated = dict(keywords or {})

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _warn(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*args, **{translated.get(name, name): value for name, value in kwargs.items()})

    call.__name__, call.__qualname__ = old, old
    signature = inspect.signature(method)
    older = {name: spelling for spelling, name in translated.items()}
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(name=older.get(name, name)) for name, p in signature.parameters.items()]
    )
    _, _, described = (method.__doc__ or "").partition("\n")
    for name, spelling in older.items():
        described = described.replace(f"{name} : ", f"{spelling} : ").replace(f"`{name}`", f"`{spelling}`")
    call.__doc__ = f"Older name of `{new}`.\n{described}"
    return call


def old_function(old: str, function: F, name: str) -> F:
    """A function under its older name, which warns when it is called.

    Parameters
    ----------
    old : str
    function : function
    name : str
        How programs reach `function` by its new name.

    Returns
    -------
    function
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(f"`{old}`", f"`{name}`")
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = old
    return call  # type: ignore[return-value]  # functools.wraps keeps the signature


def old_attribute(module: str, old: str, new: str, found: Any) -> Any:
    """What an older name of a module stands for, with a DeprecationWarning.

    Parameters
    ----------
    module, old, new : str
        Name of the module, the older name in it, and what to use.
    found : object

    Returns
    -------
    object
        `found`.
    """
    _warn(f"`{module}.{old}`", f"`{new}`")
    return found


class RemovedAttribute:
    """An attribute that instances of a class no longer have: reading it says what to use.

    Instances may set an attribute of this name.

    Parameters
    ----------
    instead : str
        What replaced it.
    """

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}: it was removed; {self._instead}",
            name=self._name,
            obj=instance,
        )


def check_removed_keywords(function: Callable[..., Any], kwargs: Mapping[str, Any], instead: Mapping[str, str]) -> None:
    """Refuse keyword arguments that a function had in older versions, with an error that says what to use.

    Parameters
    ----------
    function : callable
        What the arguments are for; those that it takes are not refused.
    kwargs : mapping of str to object
        The keyword arguments of the call.
    instead : mapping of str to str
        The older arguments, and what replaced them.

    Raises
    ------
    TypeError
        If the function does not take one of the older arguments.
    """
    given = [name for name in instead if name in kwargs]
    if not given:
        return
    taken = inspect.signature(function).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in taken.values()):
        return
    for name in given:
        if name not in taken:
            problem = f"{function.__qualname__}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{problem}: it was removed; {instead[name]}")


def removed_keywords(instead: Mapping[str, str]) -> Callable[[F], F]:
    """Decorator: as `check_removed_keywords`, for each call of the function.

    Parameters
    ----------
    instead : mapping of str to str
        Older arguments, and what replaced them.

    Returns
    -------
    decorator
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                check_removed_keywords(function, kwargs, instead)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]  # functools.wraps keeps the signature

    return decorate


def removed(module: str, name: str) -> AttributeError:
    """The error of a name that a module does not have.

    Parameters
    ----------
    module, name : str

    Returns
    -------
    AttributeError
        To be raised; it says what to use if `name` is one of `REMOVED`.
    """
    return AttributeError(f"module {module!r} has no attribute {name!r}{_instead(module, name)}", name=name)


def _instead(module: str, name: str) -> str:
    """What to use in place of a name that a module does not have; empty if it never had it."""
    if name in REMOVED.get(module, {}):
        return f": it was removed; {REMOVED[module][name]}"
    return ""


class RemovedModuleLoader:
    """Loader of the modules in `REMOVED`: importing one says what to use."""

    @staticmethod
    def spec(name: str) -> ModuleSpec | None:
        """How to import a module that does not exist.

        Parameters
        ----------
        name : str
            Full name of the module.

        Returns
        -------
        ModuleSpec or None
            None for modules that are not in the tables.
        """
        parent, _, leaf = name.rpartition(".")
        loader: Any = RemovedModuleLoader()
        return ModuleSpec(name, loader) if _instead(parent, leaf) else None

    def create_module(self, spec: ModuleSpec) -> NoReturn:
        """Refuse the module.

        Parameters
        ----------
        spec : ModuleSpec

        Raises
        ------
        ImportError
            Not a ModuleNotFoundError, which ``from mxnet import name`` would replace by its own.
        """
        parent, _, leaf = spec.name.rpartition(".")
        raise ImportError(f"no module named {spec.name!r}{_instead(parent, leaf)}", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Never called; loaders must have it.

        Parameters
        ----------
        module : ModuleType
        """


def attribute_finder(module: str, *sources: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module.

    Parameters
    ----------
    module : str
    *sources : str
        Modules whose public names are found here too: MXNet 2 had them in `module`.

    Returns
    -------
    function
        Takes a name that the module does not have. Raises what `removed` makes if no source has it either.
    """

    def find(name: str) -> Any:
        if not name.startswith("_"):
            for source in sources:
                found = importlib.import_module(source)
                # A source that is just being imported has no list yet.
                if name in getattr(found, "__all__", ()):
                    return getattr(found, name)
        raise removed(module, name)

    return find
