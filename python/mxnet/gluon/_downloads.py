"""Downloads of files: atomic, and verified by a checksum."""

from __future__ import annotations

import hashlib
import os
import shutil
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from mxnet._atomic_file import write_atomically
from mxnet.base import PathLike
from mxnet.error import FileFormatError

__all__ = ["check_sha1", "download", "replace_file"]


def check_sha1(filename: PathLike, sha1_hash: str) -> bool:
    """Whether a file has a checksum.

    Parameters
    ----------
    filename : path
    sha1_hash : str
        SHA-1 in hexadecimal digits.

    Returns
    -------
    bool

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import os
    >>> mx.gluon.utils.check_sha1(os.devnull, "da39a3ee5e6b4b0d3255bfef95601890afd80709")  # of nothing
    True
    """
    with open(filename, "rb") as file:
        # SHA-1 detects damaged files; it is no protection against forged ones.
        digest = hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False))
    return digest.hexdigest() == sha1_hash.lower()


def replace_file(src: PathLike, dst: PathLike) -> None:
    """Give a file the name of another one, which is gone then.

    Parameters
    ----------
    src, dst : path
        On one file system.

    Raises
    ------
    OSError
        If it cannot be renamed.
    """
    os.replace(src, dst)


def download(
    url: str,
    path: PathLike | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
) -> str:
    """Fetch a file.

    Parameters
    ----------
    url : str
    path : path, optional
        Where the file shall be: its name, or a folder. The name in `url`, in the current folder, by default.
    overwrite : bool
        Fetch it even if it is there.
    sha1_hash : str, optional
        SHA-1 that it must have, in hexadecimal digits. A file that is there with another one is fetched again.
    retries : int
        How many times it is tried again after a failure.
    verify_ssl : bool
        Whether the certificate of the server is checked.

    Returns
    -------
    str
        The name of the file.

    Raises
    ------
    ValueError
        If `retries` is negative, or `url` names no file.
    OSError
        If it cannot be fetched.
    FileFormatError
        If it has another checksum. What was there before remains.
    """
    if retries < 0:
        raise ValueError(f"download: `retries` must not be negative, found {retries}")
    name = Path(urllib.parse.urlparse(url).path).name
    target = Path(name) if path is None else Path(path).expanduser()
    if path is not None and target.is_dir():
        target /= name
    if not target.name:
        raise ValueError(f"download: {url!r} names no file; give `path`")
    if target.exists() and not overwrite and (sha1_hash is None or check_sha1(target, sha1_hash)):
        return str(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    context = None if verify_ssl else ssl._create_unverified_context()

    def write(part: str) -> None:
        with urllib.request.urlopen(url, context=context) as answer, open(part, "wb") as file:
            shutil.copyfileobj(answer, file)
        if sha1_hash is not None and not check_sha1(part, sha1_hash):
            raise FileFormatError(f"download: {url!r} has not the checksum {sha1_hash}")

    for attempt in range(retries + 1):
        try:
            write_atomically(target, write)
            break
        except (OSError, FileFormatError):
            if attempt == retries:
                raise
    return str(target)
