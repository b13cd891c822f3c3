"""Vocabulary: maps tokens to indices and back."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as onp

from mxnet.numpy import ndarray

__all__ = ["UNKNOWN_INDEX", "Vocabulary"]

# Index of the token that stands for all that are not indexed.
UNKNOWN_INDEX = 0


class Vocabulary:
    """Indices of tokens, the frequent ones of a text first.

    Parameters
    ----------
    counter : collections.Counter, optional
        How often each token occurs; see `mx.contrib.text.utils.count_tokens_from_str`.
    most_freq_count : int, optional
        How many tokens of `counter` are indexed at most.
    min_freq : int
        Tokens that occur less often are not indexed.
    unknown_token : str
        Stands for all tokens that are not indexed; its index is 0.
    reserved_tokens : sequence of str, optional
        Indexed from 1 on whether they occur or not.

    Raises
    ------
    TypeError
        If `counter` is no `collections.Counter`, or `reserved_tokens` is a str.
    ValueError
        If `min_freq` is below 1, `most_freq_count` is negative, or a reserved token is the unknown one or is there
        twice.

    Notes
    -----
    Behind the unknown and the reserved ones come the tokens of `counter` by falling frequency, equally frequent ones
    in the order of their characters.

    Examples
    --------
    >>> from collections import Counter
    >>> vocabulary = mx.contrib.text.vocab.Vocabulary(Counter(['b', 'a', 'b', 'c', 'c', 'c']), min_freq=2,
    ...                                               reserved_tokens=['<pad>'])
    >>> vocabulary.idx_to_token
    ['<unk>', '<pad>', 'c', 'b']
    >>> vocabulary.to_indices(['b', 'a', '<pad>'])
    [3, 0, 1]
    """

    def __init__(
        self,
        counter: Counter[str] | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: str = "<unk>",
        reserved_tokens: Sequence[str] | None = None,
    ) -> None:
        if counter is not None and not isinstance(counter, Counter):
            raise TypeError(f"Vocabulary: `counter` must be a collections.Counter, found {type(counter).__name__}")
        if min_freq < 1:
            raise ValueError(f"Vocabulary: `min_freq` must be at least 1, found {min_freq}")
        if most_freq_count is not None and most_freq_count < 0:
            raise ValueError(f"Vocabulary: `most_freq_count` must not be negative, found {most_freq_count}")
        if isinstance(reserved_tokens, str):
            raise TypeError(f"Vocabulary: `reserved_tokens` must be a sequence of tokens, found {reserved_tokens!r}")
        reserved = None if reserved_tokens is None else list(reserved_tokens)
        fixed = [unknown_token, *(reserved or ())]
        if len(set(fixed)) < len(fixed):
            raise ValueError(
                f"Vocabulary: `reserved_tokens` must be different, and none of them {unknown_token!r}, found {reserved}"
            )
        found = sorted((counter or {}).items(), key=lambda item: (-item[1], item[0]))
        frequent = [token for token, times in found if times >= min_freq and token not in fixed]
        self._unknown_token = unknown_token
        self._reserved_tokens = reserved
        self._idx_to_token = fixed + frequent[:most_freq_count]
        self._token_to_idx = {token: index for index, token in enumerate(self._idx_to_token)}

    def __len__(self) -> int:
        return len(self._idx_to_token)

    def __contains__(self, token: object) -> bool:
        return token in self._token_to_idx

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tokens, unknown_token={self._unknown_token!r})"

    @property
    def token_to_idx(self) -> dict[str, int]:
        """The index of each token, a dict of str to int."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[str]:
        """The tokens, a list of str in the order of their indices."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> str:
        """Stands for all tokens that are not indexed."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[str] | None:
        """Tokens that are indexed whether they occur or not, a list of str, or None."""
        return self._reserved_tokens

    def to_indices(self, tokens: str | Sequence[str]) -> Any:
        """Indices of tokens; 0 for those that are not indexed.

        Parameters
        ----------
        tokens : str or sequence of str

        Returns
        -------
        int or list of int
        """
        if isinstance(tokens, str):
            return self._token_to_idx.get(tokens, UNKNOWN_INDEX)
        return [self._token_to_idx.get(token, UNKNOWN_INDEX) for token in tokens]

    def to_tokens(self, indices: int | Sequence[int] | ndarray | onp.ndarray) -> Any:
        """Tokens of indices.

        Parameters
        ----------
        indices : int, sequence of int or array of integers with at most one axis

        Returns
        -------
        str or list of str

        Raises
        ------
        ValueError
            If an index is no integer from 0 to below the number of tokens.
        """
        if isinstance(indices, ndarray | onp.ndarray):
            indices = indices.tolist()
        if isinstance(indices, Sequence):
            return [self._token(index) for index in indices]
        return self._token(indices)

    def _token(self, index: Any) -> str:
        try:
            number = -1 if isinstance(index, bool) else operator.index(index)
        except TypeError:
            number = -1
        if not 0 <= number < len(self):
            raise ValueError(
                f"{type(self).__name__}.to_tokens: indices must be integers from 0 to {len(self) - 1}, found {index!r}"
            )
        token: str = self._idx_to_token[number]
        return token
