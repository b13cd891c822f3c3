"""Counts of words."""

from __future__ import annotations

import re
from collections import Counter

__all__ = ["count_tokens_from_str"]


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: Counter[str] | None = None,
) -> Counter[str]:
    r"""How often each token occurs in a text.

    Parameters
    ----------
    source_str : str
    token_delim, seq_delim : str
        Regular expressions of what is between tokens and between sequences.
    to_lower : bool
        Count tokens in lower case.
    counter_to_update : collections.Counter, optional
        Counts to add to.

    Returns
    -------
    collections.Counter
        `counter_to_update` if it was given.

    Examples
    --------
    >>> counts = mx.contrib.text.utils.count_tokens_from_str('Life is good . \n life is life .', to_lower=True)
    >>> counts['life'], counts['is'], counts['.']
    (3, 2, 2)
    """
    tokens = [token for token in re.split(f"{token_delim}|{seq_delim}", source_str) if token]
    counter: Counter[str] = Counter() if counter_to_update is None else counter_to_update
    counter.update(token.lower() for token in tokens) if to_lower else counter.update(tokens)
    return counter
