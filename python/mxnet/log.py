"""Loggers that write one line a message: level, time, process, place in the program."""

from __future__ import annotations

import logging

from mxnet._renamed import old_attribute, removed
from mxnet.base import PathLike

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "get_logger"]

CRITICAL = logging.CRITICAL
ERROR = logging.ERROR
WARNING = logging.WARNING
INFO = logging.INFO
DEBUG = logging.DEBUG
NOTSET = logging.NOTSET

_FORMAT = "{levelname[0]}{asctime} {process} {pathname}:{funcName}:{lineno}] {message}"


def get_logger(
    name: str | None = None, filename: PathLike | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """A logger of Python's `logging` with a handler and a level.

    Parameters
    ----------
    name : str, optional
        The root logger by default, which remains as it is.
    filename : path, optional
        Where messages go; standard error by default.
    filemode : str, optional
        Mode in which the file is opened, "a" by default.
    level : int
        Least level of messages that are written.

    Returns
    -------
    logging.Logger
        One that has a handler, from another call or of the program's own, is returned as it is.

    Raises
    ------
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> logger = mx.log.get_logger('training', level=mx.log.INFO)
    >>> logger.isEnabledFor(mx.log.DEBUG)
    False
    """
    logger = logging.getLogger(name)
    if name is None or logger.handlers:
        return logger
    handler = logging.StreamHandler() if filename is None else logging.FileHandler(filename, filemode or "a")
    handler.setFormatter(logging.Formatter(_FORMAT, "%m%d %H:%M:%S", style="{"))
    logger.addHandler(handler)
    logger.setLevel(level)
    return logger


def __getattr__(name: str) -> object:
    if name == "getLogger":
        return old_attribute(__name__, name, f"{__name__}.get_logger", get_logger)
    raise removed(__name__, name)
