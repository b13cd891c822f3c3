"""Warnings that name the line of the user's program, however many functions of the package are in between."""

from __future__ import annotations

import os
import sys
import warnings

__all__ = ["warn_caller"]

_PACKAGE = os.path.dirname(__file__) + os.sep


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the innermost line that is not in this package.

    Parameters
    ----------
    message : str
    category : type of Warning, optional
    """
    # `skip_file_prefixes` of `warnings.warn` does the same from Python 3.12 on.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
