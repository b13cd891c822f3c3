"""Networks that predict with 8-bit integers."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mxnet import _core
from mxnet import numpy as np
from mxnet._core import ndarray
from mxnet.contrib._calibration import CalibrationCollector, EntropyCollector, MinMaxCollector, missing
from mxnet.contrib._int8_graph import rewritten, with_values
from mxnet.contrib._int8_plan import Plan, Source
from mxnet.device import Device, cpu
from mxnet.error import UnsupportedError
from mxnet.gluon._export import prediction_graph
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.symbol_block import SymbolBlock
from mxnet.graph import Graph, document

__all__ = ["CalibrationCollector", "quantize_net"]

_MODES = ("none", "naive", "entropy", "custom")


def quantize_net(
    network: HybridBlock,
    quantized_dtype: str = "auto",
    quantize_mode: str = "full",
    quantize_granularity: str = "tensor-wise",
    exclude_layers: Sequence[str] | None = None,
    exclude_layers_match: Sequence[str] | None = None,
    exclude_operators: Sequence[str] | None = None,
    calib_data: Iterable[Any] | None = None,
    data_shapes: Sequence[Any] | None = None,
    calib_mode: str = "none",
    num_calib_batches: int | None = None,
    device: Device | None = None,
    LayerOutputCollector: CalibrationCollector | None = None,
    logger: logging.Logger | None = None,
) -> SymbolBlock:
    """A copy of a network that predicts with convolutions and fully connected layers of 8-bit integers.

    Batch normalisation, additions and relu after a layer are computed with it. Pooling between layers has integers too.

    Parameters
    ----------
    network : HybridBlock
        A network of float32 with values in its parameters. It is hybridized and called.
    quantized_dtype : {'auto', 'int8', 'uint8'}
        Type of the values between layers: uint8 represents no negative numbers; 'auto' takes it where there are none.
        Weights are int8.
    quantize_mode : {'full', 'smart'}
        Whether pooling before a quantised layer has integers even if they have to be made of floats for it.
    quantize_granularity : {'tensor-wise', 'channel-wise'}
        Whether the weights of a layer have one range, or the weights of each filter their own.
    exclude_layers : sequence of str, optional
        Layers that stay as they are. A layer has the name of its parameters without ``.weight``, such as
        ``features.0``; pooling is ``pooling0``, ``pooling1``, in the order of the calls.
    exclude_layers_match : sequence of str, optional
        Parts of names of layers that stay as they are.
    exclude_operators : sequence of str, optional
        'convolution', 'fully_connected', 'pooling', or the names that MXNet has for them.
    calib_data : iterable, optional
        Batches, arrays or sequences of arrays such as a `DataLoader` gives; those that the network does not take, such
        as labels, come last.
    data_shapes : sequence of tuple of int or DataDesc, optional
        Shapes of the arguments; by default those of the first batch.
    calib_mode : {'none', 'naive', 'entropy', 'custom'}
        Where the ranges of values come from: 'none' finds them in each prediction, and layers return floats;
        'naive' takes the smallest and the largest number of all batches, 'entropy' the thresholds that keep most
        information, 'custom' what `LayerOutputCollector` gives.
    num_calib_batches : int, optional
        By default all batches.
    device : Device, optional
        A CPU.
    LayerOutputCollector : CalibrationCollector, optional
        For ``calib_mode="custom"``.
    logger : logging.Logger, optional

    Returns
    -------
    SymbolBlock
        It can be hybridized, exported and imported; it has no gradients.

    Raises
    ------
    ValueError
        If an argument is none of those, there is no such layer, or a value has no range.
    TypeError
        If `network` is no HybridBlock, or the collector no CalibrationCollector.
    UnsupportedError
        If `device` is not a CPU, or the network takes sparse or ragged arrays.

    Examples
    --------
    >>> net = mx.gluon.nn.HybridSequential()
    >>> net.add(mx.gluon.nn.Conv2D(8, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Activation("relu"))
    >>> net.add(mx.gluon.nn.Dense(4))
    >>> net.initialize()
    >>> images = np.random.uniform(-1, 1, (16, 3, 6, 6))
    >>> small = mx.contrib.quantization.quantize_net(net, calib_data=[images], calib_mode="naive")
    >>> small(images).shape
    (16, 4)
    """
    _check_choice("quantized_dtype", quantized_dtype, ("auto", "int8", "uint8"))
    _check_choice("quantize_mode", quantize_mode, ("full", "smart"))
    _check_choice("quantize_granularity", quantize_granularity, ("tensor-wise", "channel-wise"))
    _check_choice("calib_mode", calib_mode, _MODES)
    if not isinstance(network, HybridBlock):
        raise TypeError(f"quantize_net: `network` must be a HybridBlock, found '{type(network).__name__}'")
    if device is not None and device.device_type != "cpu":
        raise UnsupportedError(f"quantize_net: `device` is {device}, 8-bit layers run on CPUs: pass `device=mx.cpu()`")
    if num_calib_batches is not None and num_calib_batches < 1:
        raise ValueError(f"quantize_net: `num_calib_batches` is {num_calib_batches}, must be at least 1")
    if calib_mode != "none" and calib_data is None:
        raise ValueError(f"quantize_net: `calib_mode` is {calib_mode!r}, which needs `calib_data`")
    collector = _collector(calib_mode, quantized_dtype, LayerOutputCollector, logger)
    batches, examples = _examples(calib_data, data_shapes, device or cpu())
    count = _call(network, examples, logger)
    graph = _graph_of(network)
    source = Source(json.loads(graph._text))
    plan = Plan(source, quantize_mode, exclude_layers or (), exclude_layers_match or (), exclude_operators or ())
    if logger is not None:
        logger.info("quantize_net: layers that stay as they are: %s", ", ".join(plan.excluded) or "none")
    ranges = None
    if collector is not None:
        ranges = _calibrated(graph, plan, collector, itertools.islice(batches, num_calib_batches), count, logger)
    entries, arrays = rewritten(plan, graph.arrays, ranges, quantized_dtype, quantize_granularity)
    names = ["data"] if count == 1 else [f"data{number}" for number in range(count)]
    return SymbolBlock(Graph(json.dumps(entries), arrays, "quantize_net"), names)


def _check_choice(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"quantize_net: `{name}` must be one of {', '.join(map(repr, allowed))}, found {value!r}")


def _collector(
    mode: str, dtype: str, given: CalibrationCollector | None, logger: logging.Logger | None
) -> CalibrationCollector | None:
    """The collector of a mode; None if ranges are found in each prediction."""
    if given is not None and mode != "custom":
        raise ValueError(f"quantize_net: `LayerOutputCollector` is given, but `calib_mode` is {mode!r}, not 'custom'")
    if mode == "custom":
        if given is None:
            raise ValueError("quantize_net: `calib_mode` is 'custom', which needs `LayerOutputCollector`")
        if not isinstance(given, CalibrationCollector):
            raise TypeError(
                "quantize_net: `LayerOutputCollector` must be an object of a subclass of CalibrationCollector, found "
                f"'{type(given).__name__}'"
            )
        return given
    if mode == "entropy":
        return EntropyCollector(dtype, logger)
    return MinMaxCollector() if mode == "naive" else None


def _arrays(batch: Any) -> list[ndarray]:
    return list(batch) if isinstance(batch, list | tuple) else [batch]


def _examples(
    data: Iterable[Any] | None, shapes: Sequence[Any] | None, device: Device
) -> tuple[Iterable[Any], list[ndarray]]:
    """All batches, and arguments like those of later calls."""
    batches = iter(data if data is not None else ())
    if shapes is not None:
        described = [(getattr(x, "shape", x), getattr(x, "dtype", "float32")) for x in shapes]
        return batches, [np.zeros(tuple(shape), dtype=dtype, device=device) for shape, dtype in described]
    if data is None:
        raise ValueError("quantize_net: give `data_shapes`, or `calib_data`, from which they follow")
    first = next(batches, None)
    if first is None:
        raise ValueError("quantize_net: `calib_data` has no batch")
    return itertools.chain([first], batches), _arrays(first)


def _call(network: HybridBlock, examples: list[ndarray], logger: logging.Logger | None) -> int:
    """Calls the network with as many of the arrays as it takes; returns how many."""
    network.hybridize()
    problem: Exception | None = None
    for count in range(len(examples), 0, -1):
        try:
            network(*examples[:count])
        except (TypeError, ValueError) as error:
            problem = problem or error
            if logger is not None and count > 1:
                logger.warning(
                    "quantize_net: the network does not take %d arrays, next %d: %s", count, count - 1, error
                )
        else:
            return count
    if problem is None:
        raise ValueError("quantize_net: a batch has no arrays")
    raise problem


def _graph_of(network: HybridBlock) -> Graph:
    """The graph of the network's last call, with its arrays."""
    name = type(network).__name__
    found, forms, _ = prediction_graph(network, network._compiled, "quantize_net")
    if forms is not None:
        raise UnsupportedError(f"quantize_net: `{name}` takes sparse or ragged arrays, only dense ones will do")
    parameters = network.collect_params()
    names = {_core.storage_of(parameter.data()): key for key, parameter in parameters.items()}
    entries, arrays = document(found, names, "quantize_net")
    values = {key: parameters[key].data() if key in parameters else array for key, array in arrays}
    return Graph(json.dumps(entries), values, name)


def _calibrated(
    graph: Graph,
    plan: Plan,
    collector: CalibrationCollector,
    batches: Iterable[Any],
    count: int,
    logger: logging.Logger | None,
) -> Mapping[str, tuple[float, float]]:
    """Ranges of the values that are quantised."""
    values = plan.values()
    names = [name for name, _ in values.values()]
    if collector.include_layers is None:
        collector.include_layers = names
    views = [plan.source.definitions[buffer] for buffer in values]
    shown = Graph(json.dumps(with_values(plan.source.document, views)), graph.arrays, "quantize_net")
    seen = 0
    for batch in batches:
        for (name, operator), value in zip(values.values(), shown(*_arrays(batch)[:count]), strict=True):
            collector.collect(name, operator, value)
        seen += 1
    ranges = collector.post_collect()
    if left := missing(ranges, names):
        raise ValueError(
            f"quantize_net: {len(left)} values have no range after {seen} batches, the first is {left[0]!r}"
        )
    if logger is not None:
        logger.info("quantize_net: ranges of %d values from %d batches", len(names), seen)
    return ranges
