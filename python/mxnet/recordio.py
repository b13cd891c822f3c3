"""Record files: many byte strings in one file, read in a row or by key.

A record is the word ``0xced7230a``, a word with its length in the lower 29 bits and a flag in the upper 3, the bytes,
and zeros up to a multiple of 4; words are little-endian. Where the first word occurs in the bytes at a multiple of 4,
they are split and that word is left out; the flag is 0 for a whole record, 1, 2 and 3 for the first, middle and last
parts of a split one. So a reader can find the beginning of a record from anywhere.
"""

from __future__ import annotations

import contextlib
import numbers
import os
import re
import struct
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as onp

from mxnet._atomic_file import AtomicFile, write_atomically
from mxnet.base import PathLike
from mxnet.error import FileFormatError

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

_MAGIC = 0xCED7230A
_MAGIC_BYTES = struct.pack("<I", _MAGIC)
_FRAME = struct.Struct("<II")
_MAX_LENGTH = (1 << 29) - 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


class MXRecordIO:
    """Records in a row.

    Parameters
    ----------
    uri : path
    flag : {"r", "w"}
        Read an old file, or write a new one.

    Raises
    ------
    ValueError
        If `flag` is another one.
    OSError
        If the file cannot be opened.

    Notes
    -----
    A new file gets its name when it is closed; until then it is a temporary file in the same folder. So a program that
    is killed leaves no half of a file, and an old file stays until the new one is whole. Leaving a ``with`` block by an
    exception drops what was written.

    Readers may be shared by threads and forked processes: each process has its own position. A pickled reader opens the
    file again, at its beginning; a writer cannot be pickled, nor used by another process.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "a.rec")
    >>> with mx.recordio.MXRecordIO(path, "w") as record:
    ...     record.write(b"one")
    ...     record.write(b"two")
    >>> record = mx.recordio.MXRecordIO(path, "r")
    >>> record.read(), record.read(), record.read()
    (b'one', b'two', None)
    >>> record.close()
    >>> folder.cleanup()
    """

    def __init__(self, uri: PathLike, flag: str) -> None:
        if flag not in ("r", "w"):
            raise ValueError(f"{type(self).__name__}: `flag` must be 'r' or 'w', found {flag!r}")
        self.uri = os.fspath(uri)
        self.flag = flag
        self.writable = flag == "w"
        self.is_open = False
        self.open()

    def open(self) -> None:
        """Open the file, at its beginning; a writer begins a new one.

        Raises
        ------
        OSError
            If the file cannot be opened.
        """
        self.close()
        self._position = 0
        self._pid = os.getpid()
        if self.writable:
            self._file = AtomicFile(self.uri)
            finish, *arguments = self._finishing()
        else:
            self._descriptor = os.open(self.uri, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            finish, arguments = os.close, [self._descriptor]
        # Also when the object is forgotten, and at the end of the program.
        self._finish = weakref.finalize(self, finish, *arguments)
        self.is_open = True

    def close(self) -> None:
        """Close the file; what was written gets its name now. Closing twice does nothing.

        Raises
        ------
        OSError
            If a new file cannot be finished.
        """
        if self.is_open:
            self.is_open = False
            self._finish()

    def reset(self) -> None:
        """Go to the beginning; a writer begins a new file and drops the records it has."""
        if self.writable and self.is_open:
            self._discard()
        self.open()

    def write(self, buf: bytes) -> None:
        """Append a record.

        Parameters
        ----------
        buf : bytes-like
            Less than 2**29 bytes.

        Raises
        ------
        ValueError
            If the file is not open for writing, or `buf` is too long.
        RuntimeError
            In another process than the one that opened the file.
        """
        self._check("write", writable=True)
        data = bytes(buf)
        if len(data) > _MAX_LENGTH:
            raise ValueError(f"write: `buf` must have less than 2**29 bytes, found {len(data)}")
        framed = _framed(data)
        self._file.write(framed)
        self._position += len(framed)

    def read(self) -> bytes | None:
        """Read the next record.

        Returns
        -------
        bytes or None
            None at the end of the file.

        Raises
        ------
        ValueError
            If the file is not open for reading.
        FileFormatError
            If the file is cut off here or holds something else.
        """
        self._check("read", writable=False)
        record, self._position = self._read_at(self._position)
        return record

    def tell(self) -> int:
        """Position in the file, in bytes: where the next record is or will be.

        Returns
        -------
        int
        """
        return self._position

    def __enter__(self) -> MXRecordIO:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and self.writable and self.is_open:
            self._discard()
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.writable:
            raise TypeError(f"{type(self).__name__}: a file that is written cannot be pickled")
        return {name: self.__dict__[name] for name in ("uri", "flag", "writable", "is_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, is_open=False)
        if state["is_open"]:
            self.open()

    def _check(self, function: str, writable: bool) -> None:
        if not self.is_open:
            raise ValueError(f"{function}: {self.uri} is closed")
        if writable != self.writable:
            raise ValueError(f"{function}: {self.uri} is open for {'writing' if self.writable else 'reading'}")
        if writable and self._pid != os.getpid():
            raise RuntimeError(f"{function}: {self.uri} was opened for writing by process {self._pid}, not by this one")

    def _discard(self) -> None:
        self.is_open = False
        self._finish.detach()
        self._file.discard()

    def _finishing(self) -> tuple[Any, ...]:
        """A function and its arguments, without `self`, that finish what is written."""
        return (self._file.close,)

    def _read_at(self, position: int) -> tuple[bytes | None, int]:
        """The record at a position and the position behind it."""
        parts: list[bytes] = []
        while True:
            head = self._bytes_at(position, _FRAME.size)
            if not head and not parts:
                return None, position
            if len(head) < _FRAME.size:
                raise FileFormatError(f"{self.uri}: cut off in the head of a record at byte {position}")
            magic, word = _FRAME.unpack(head)
            if magic != _MAGIC:
                raise FileFormatError(f"{self.uri}: no record at byte {position}: {magic:#010x} instead of {_MAGIC:#x}")
            flag, length = word >> 29, word & _MAX_LENGTH
            if flag not in ((_MIDDLE, _LAST) if parts else (_WHOLE, _FIRST)):
                raise FileFormatError(
                    f"{self.uri}: part {len(parts)} of a record at byte {position} has the flag {flag}, which does not "
                    "belong there"
                )
            data = self._bytes_at(position + _FRAME.size, length)
            if len(data) < length:
                raise FileFormatError(
                    f"{self.uri}: the record at byte {position} should have {length} bytes, but the file has "
                    f"{len(data)}"
                )
            parts.append(data)
            position += _FRAME.size + length + -length % 4
            if flag in (_WHOLE, _LAST):
                return _MAGIC_BYTES.join(parts), position

    def _bytes_at(self, position: int, length: int) -> bytes:
        """Bytes of the file, less at its end. The position is ours: the system's is shared with forked processes."""
        data = _pread(self._descriptor, length, position)
        while len(data) < length and (more := _pread(self._descriptor, length - len(data), position + len(data))):
            data += more
        return data


def _pread(descriptor: int, length: int, position: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, length, position)
    os.lseek(descriptor, position, os.SEEK_SET)  # where this runs, processes are not forked
    return os.read(descriptor, length)


def _framed(data: bytes) -> bytes:
    """A record as it is in the file."""
    starts = [found.start() for found in re.finditer(re.escape(_MAGIC_BYTES), data) if found.start() % 4 == 0]
    if not starts:
        return b"".join((_FRAME.pack(_MAGIC, len(data)), data, bytes(-len(data) % 4)))
    ends = [*starts, len(data)]
    begins = [0, *(start + 4 for start in starts)]
    flags = [_FIRST, *[_MIDDLE] * (len(starts) - 1), _LAST]
    pieces = []
    for flag, begin, end in zip(flags, begins, ends, strict=True):
        pieces += [_FRAME.pack(_MAGIC, flag << 29 | end - begin), data[begin:end]]
    return b"".join((*pieces, bytes(-len(data) % 4)))


class MXIndexedRecordIO(MXRecordIO):
    """Records by key: a record file and an index beside it.

    Parameters
    ----------
    idx_path : path
        The index, a text file: a key, a tab and the record's position in each line.
    uri : path
        The record file.
    flag : {"r", "w"}
    key_type : callable of str
        Makes a key of its text.

    Attributes
    ----------
    keys : list
        Keys in the order in which they were written.
    idx : dict
        Keys and positions.

    Raises
    ------
    ValueError
        If `flag` is another one.
    FileFormatError
        If a line of the index is something else.
    OSError
        If a file cannot be opened.

    Notes
    -----
    Reading by key may be done by several threads at once.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> paths = [os.path.join(folder.name, name) for name in ("a.idx", "a.rec")]
    >>> with mx.recordio.MXIndexedRecordIO(*paths, "w") as record:
    ...     record.write_idx(7, b"seven")
    ...     record.write_idx(3, b"three")
    >>> record = mx.recordio.MXIndexedRecordIO(*paths, "r")
    >>> record.keys, record.read_idx(3)
    ([7, 3], b'three')
    >>> record.close()
    >>> folder.cleanup()
    """

    def __init__(self, idx_path: PathLike, uri: PathLike, flag: str, key_type: Callable[[str], Any] = int) -> None:
        self.idx_path = os.fspath(idx_path)
        self.key_type = key_type
        super().__init__(uri, flag)

    def open(self) -> None:
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        self._lines: list[str] = []
        if not self.writable:
            self._read_index()
        super().open()

    def seek(self, idx: Any) -> None:
        """Go to a record.

        Parameters
        ----------
        idx : key

        Raises
        ------
        KeyError
            If there is no such record.
        ValueError
            If the file is not open for reading.
        """
        self._check("seek", writable=False)
        self._position = self._position_of(idx)

    def read_idx(self, idx: Any) -> bytes:
        """Read a record.

        Parameters
        ----------
        idx : key

        Returns
        -------
        bytes

        Raises
        ------
        KeyError
            If there is no such record.
        ValueError
            If the file is not open for reading.
        FileFormatError
            If no record is where the index says.
        """
        self._check("read_idx", writable=False)
        start = self._position_of(idx)
        record, self._position = self._read_at(start)
        if record is None:
            raise FileFormatError(f"{self.uri}: ends before byte {start}, where {self.idx_path} has record {idx!r}")
        return record

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Append a record under a key.

        Parameters
        ----------
        idx : key
            Its text, without tabs and line ends, must give the key back.
        buf : bytes-like
            Less than 2**29 bytes.

        Raises
        ------
        ValueError
            If the file is not open for writing, `buf` is too long, or `idx` is in use or no key.
        """
        self._check("write_idx", writable=True)
        key = self.key_type(idx)
        if key in self.idx:
            raise ValueError(f"write_idx: key {key!r} is in use")
        if "\t" in str(key) or len(str(key).splitlines()) != 1:
            raise ValueError(f"write_idx: a key must be one line without tabs, found {key!r}")
        start = self.tell()
        self.write(buf)
        self._lines.append(f"{key}\t{start}\n")
        self.idx[key] = start
        self.keys.append(key)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "idx_path": self.idx_path, "key_type": self.key_type}

    def _position_of(self, idx: Any) -> int:
        if idx not in self.idx:
            raise KeyError(f"{self.idx_path}: no record with the key {idx!r}")
        return self.idx[idx]

    def _read_index(self) -> None:
        with open(self.idx_path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    text, start = line.rstrip("\n").split("\t")
                    key, position = self.key_type(text), int(start)
                except ValueError:
                    raise FileFormatError(
                        f"{self.idx_path}: line {number} must be a key, a tab and a position, found {line[:80]!r}"
                    ) from None
                self.idx[key] = position
                self.keys.append(key)

    def _finishing(self) -> tuple[Any, ...]:
        return _finish_both, self._file, self.idx_path, self._lines


def _finish_both(records: AtomicFile, idx_path: str, lines: list[str]) -> None:
    """Finish a record file, then its index: a crash in between leaves none, not one of other records."""
    if not records.is_mine:
        return records.close()

    def write(path: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(idx_path)
    records.close()
    return write_atomically(idx_path, write)


class IRHeader(NamedTuple):
    """What stands before the data of an item.

    Attributes
    ----------
    flag : int
        Number of float32 labels, 0 for a single one in `label`.
    label : float or array of float32
    id : int
        From 0 to ``2**64 - 1``.
    id2 : int
        As `id`; the higher half of longer ones.

    Examples
    --------
    >>> mx.recordio.IRHeader(0, 2.0, 7, 0).label
    2.0
    """

    flag: int
    label: Any
    id: int
    id2: int


_HEADER = struct.Struct("<IfQQ")


def pack(header: IRHeader, s: bytes) -> bytes:
    """Put a header before data.

    Parameters
    ----------
    header : IRHeader
        The flag is set to the number of labels if `label` is no number.
    s : bytes

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If a number does not fit its field.

    Examples
    --------
    >>> packed = mx.recordio.pack(mx.recordio.IRHeader(0, [1.0, 2.0], 7, 0), b"data")
    >>> header, data = mx.recordio.unpack(packed)
    >>> header.flag, header.label, header.id, data
    (2, array([1., 2.], dtype=float32), 7, b'data')
    """
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        header, labels = header._replace(flag=0), b""
    else:
        values = onp.asarray(header.label, dtype="<f4")
        header, labels = header._replace(flag=values.size, label=0), values.tobytes()
    try:
        return b"".join((_HEADER.pack(*header), labels, s))
    except (struct.error, OverflowError) as error:
        raise ValueError(f"pack: {header} does not fit uint32, float32, uint64 and uint64 ({error})") from None


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """Take a header and data apart.

    Parameters
    ----------
    s : bytes
        What `pack` made.

    Returns
    -------
    header : IRHeader
        Its label is a float, or a float32 array of NumPy with `flag` entries if that is above 0.
    data : bytes

    Raises
    ------
    FileFormatError
        If `s` is too short for its header.
    """
    if len(s) < _HEADER.size:
        raise FileFormatError(f"unpack: a header has {_HEADER.size} bytes, found {len(s)}")
    header = IRHeader(*_HEADER.unpack_from(s))
    start = _HEADER.size + 4 * header.flag
    if len(s) < start:
        raise FileFormatError(f"unpack: {header.flag} labels need {start} bytes, found {len(s)}")
    if header.flag > 0:
        # A copy, as bytes cannot be written to.
        labels = onp.frombuffer(s, "<f4", header.flag, _HEADER.size).astype("float32")
        header = header._replace(label=labels)
    return header, s[start:]


def pack_img(header: IRHeader, img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """Put a header before an encoded image.

    Parameters
    ----------
    header : IRHeader
    img : array_like, shape (h, w) or (h, w, c), uint8
        Colours in the order blue, green, red.
    quality : int
        For JPEG from 1 to 100. For PNG the effort of compression from 0 to 9; more than 9, as the default, is 9.
    img_fmt : {".jpg", ".jpeg", ".png"}

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the image cannot be encoded so.
    """
    from mxnet import image  # needs a codec, which records of other data do without

    array = onp.asarray(img)
    if array.ndim == 3 and array.shape[2] >= 3:
        # Red first; transparency stays behind the colours.
        array = array[..., [2, 1, 0, *range(3, array.shape[2])]]
    effort = min(quality, 9) if img_fmt.lower() == ".png" else quality
    return pack(header, image._imencode(array, effort, img_fmt))


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, Any]:
    """Take a header and an image apart, and decode the image.

    Parameters
    ----------
    s : bytes
        What `pack_img` made.
    iscolor : {-1, 0, 1}
        1 for colours, 0 for grey levels, -1 for what the image has.

    Returns
    -------
    header : IRHeader
    img : numpy.ndarray, shape (h, w) or (h, w, c), uint8
        Colours in the order blue, green, red.

    Raises
    ------
    FileFormatError
        If `s` is too short for its header.
    OSError
        If the image cannot be decoded.
    """
    from mxnet import image

    header, data = unpack(s)
    decoded = image.imdecode(data, flag=iscolor, to_rgb=False).asnumpy()
    return header, decoded[..., 0] if decoded.shape[-1] == 1 else decoded
