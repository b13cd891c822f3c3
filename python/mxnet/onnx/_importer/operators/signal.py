"""Fourier transforms of signals and what belongs to them."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import numpy as np
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator
from mxnet.onnx._importer.values import numbers


def _complex(x: Any) -> Any:
    """Complex numbers from a last axis with real and imaginary parts; real ones if there is only one part."""
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _parts(x: Any, dtype: str) -> Any:
    return np.stack([np.real(x), np.imag(x)], axis=-1).astype(dtype)


@operator("DFT", host=(1, 2))
def dft(call: Call, x: Any, length: Any = None, axis: Any = None) -> Any:
    number = call["axis"] if call.opset < 20 else (-2 if axis is None else numbers(axis)[0])
    number = (1 if number is None else number) % x.ndim
    count = None if length is None else numbers(length)[0]
    signal, dtype = _complex(x), dtype_name(x.dtype)
    if call["inverse"]:
        if call["onesided"]:
            return np.expand_dims(np.fft.irfft(signal, n=count, axis=number), -1).astype(dtype)
        return _parts(np.fft.ifft(signal, n=count, axis=number), dtype)
    found = np.fft.fft(signal, n=count, axis=number)
    if call["onesided"]:
        key = [slice(None)] * found.ndim
        key[number] = slice(0, found.shape[number] // 2 + 1)
        found = found[tuple(key)]
    return _parts(found, dtype)


@operator("STFT", host=(1, 3))
def stft(call: Call, x: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    """Spectra of overlapping frames, (n, frames, frequencies, 2), of signals (n, time, 1 or 2)."""
    signal = _complex(x) if x.ndim == 3 else x
    (stride,) = numbers(step)
    size = numbers(length)[0] if length is not None else window.shape[0]
    count = (int(signal.shape[1]) - size) // stride + 1
    positions = numpy.arange(count)[:, None] * stride + numpy.arange(size)
    frames = np.take(signal, np.array(positions), axis=1)
    if window is not None:
        frames = frames * window
    found = np.fft.fft(frames, axis=-1)
    return _parts(found[..., : size // 2 + 1] if call["onesided"] else found, dtype_name(x.dtype))


@operator("MelWeightMatrix", host=(0, 1, 2, 3, 4))
def mel_weight_matrix(call: Call, bins: Any, length: Any, rate: Any, lower: Any, upper: Any) -> Any:
    """Triangles that are equally wide on the mel scale, (frequencies, bins)."""
    num_bins, num_frequencies = numbers(bins)[0], numbers(length)[0] // 2 + 1
    low, high = (2595 * numpy.log10(1 + float(x) / 700) for x in (lower, upper))
    mels = low + numpy.arange(num_bins + 2) * ((high - low) / (num_bins + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    edges = ((numbers(length)[0] + 1) * hertz // numbers(rate)[0]).astype(int)
    matrix = numpy.zeros((num_frequencies, num_bins))
    for column in range(num_bins):
        first, centre, last = edges[column : column + 3]
        if centre == first:
            matrix[centre, column] = 1
        else:
            matrix[first : centre + 1, column] = numpy.arange(centre + 1 - first) / (centre - first)
        if last > centre:
            matrix[centre:last, column] = (last - numpy.arange(centre, last)) / (last - centre)
    return np.array(matrix, dtype=call.dtype(call["output_datatype"]))
