"""Files of scalars that TensorBoard reads.

A file is a row of records: the length (8 bytes, little endian), a check sum of these (4), an ``Event``, a check sum of
it (4). Check sums are CRC-32C, rotated right by 15 bits, plus a constant. An ``Event`` is a protocol buffer: 1 the time
(double), 2 the step (int64), 3 the version of the file (string), 5 a ``Summary`` whose field 1 is a value with a name
(1, string) and a number (2, float). Source: the files ``record_writer.h`` and ``event.proto`` of TensorFlow.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import time
from typing import Any

import numpy as onp

from mxnet.base import PathLike

__all__ = ["EventFile", "crc32c"]

_counter = itertools.count()


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The check sum CRC-32C (Castagnoli).

    Parameters
    ----------
    data : bytes

    Returns
    -------
    int
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # as two's complement
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _message(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(content)) + content


class EventFile:
    """A new file of events in a folder, which is made if there is none.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: PathLike) -> None:
        os.makedirs(folder, exist_ok=True)
        # TensorBoard takes files with "tfevents" in their name; the rest keeps those of several programs apart.
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_counter)}"
        self.path = os.path.join(folder, name)
        self._waiting = bytearray()
        self._write(_message(3, b"brain.Event:2"))
        with open(self.path, "xb"):
            self.flush()

    def _write(self, content: bytes) -> None:
        event = b"\x09" + struct.pack("<d", time.time()) + content
        length = struct.pack("<Q", len(event))
        self._waiting += length + _masked(length) + event + _masked(event)

    def add(self, name: str, value: Any, step: int) -> None:
        """Note a number; `flush` writes it.

        Parameters
        ----------
        name : str
        value : float
            Files hold float32: larger values become infinite.
        step : int
        """
        with onp.errstate(over="ignore"):
            number = onp.array(float(value)).astype("<f4").tobytes()
        summary = _message(1, _message(1, name.encode()) + b"\x15" + number)
        self._write(b"\x10" + _varint(step) + _message(5, summary))

    def flush(self) -> None:
        """Write what was noted. The file is open during this call only."""
        with open(self.path, "ab") as file:
            file.write(self._waiting)
        self._waiting.clear()
