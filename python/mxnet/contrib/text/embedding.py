"""Vectors of words, read from local files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as onp

from mxnet import numpy as np
from mxnet import registry
from mxnet.base import PathLike, data_dir
from mxnet.contrib.text.vocab import Vocabulary
from mxnet.error import FileFormatError
from mxnet.numpy import ndarray
from mxnet.numpy._errors import warn_at_caller

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "register",
]

T = TypeVar("T", bound=type)


def register(embedding_cls: T) -> T:
    """Class decorator: let `create` make a class by its name in lower case.

    Parameters
    ----------
    embedding_cls : type
        A subclass of `CustomEmbedding` or of another one of this module.

    Returns
    -------
    type
        `embedding_cls`.

    Raises
    ------
    TypeError
        If it is something else.

    Examples
    --------
    >>> embedding = mx.contrib.text.embedding
    >>> @embedding.register
    ... class OfMyWords(embedding.CustomEmbedding):
    ...     pass
    >>> 'ofmywords' in embedding.get_pretrained_file_names()
    True
    """
    given: Any = embedding_cls
    if not isinstance(given, type) or not issubclass(given, _TokenEmbedding):
        raise TypeError(f"register: `embedding_cls` must be a class of embeddings, found {given!r}")
    registered: T = _register(embedding_cls)
    return registered


def create(embedding_name: str, **kwargs: Any) -> _TokenEmbedding:
    r"""An embedding by its name.

    Parameters
    ----------
    embedding_name : str
        ``"glove"``, ``"fasttext"`` or the name of a class that `register` got; case does not matter.
    **kwargs
        Arguments of the class.

    Returns
    -------
    CustomEmbedding or another class of this module

    Raises
    ------
    ValueError
        If there is no such name.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> os.mkdir(os.path.join(folder.name, 'glove'))
    >>> with open(os.path.join(folder.name, 'glove', 'glove.6B.50d.txt'), 'w') as file:
    ...     written = file.write('the 0.5 1\nof 2 3\n')
    >>> create = mx.contrib.text.embedding.create
    >>> create('glove', pretrained_file_name='glove.6B.50d.txt', embedding_root=folder.name).idx_to_token
    ['<unk>', 'the', 'of']
    >>> folder.cleanup()
    """
    made: _TokenEmbedding = _create(embedding_name, **kwargs)
    return made


def get_pretrained_file_names(
    embedding_name: str | None = None, embedding_root: PathLike | None = None
) -> dict[str, list[str]] | list[str]:
    """Names of the files that `create` can read.

    Parameters
    ----------
    embedding_name : str, optional
        As for `create`.
    embedding_root : path, optional
        Folder with one folder for each name; ``embeddings`` in `mx.base.data_dir()` by default.

    Returns
    -------
    list of str, or dict of str to list of str
        The files in the folder of the name; without a name those of each. Nothing is downloaded.

    Raises
    ------
    KeyError
        If there is no such name.

    Examples
    --------
    >>> sorted(set(mx.contrib.text.embedding.get_pretrained_file_names()) & {'glove', 'fasttext'})
    ['fasttext', 'glove']
    """
    names = sorted(registry.get_registry(_TokenEmbedding))
    if embedding_name is None:
        return {name: _files(name, embedding_root) for name in names}
    if embedding_name.lower() not in names:
        raise KeyError(f"get_pretrained_file_names: `embedding_name` must be one of {names}, found {embedding_name!r}")
    return _files(embedding_name.lower(), embedding_root)


def _folder(name: str, root: PathLike | None) -> str:
    return os.path.join(os.path.expanduser(os.path.join(data_dir(), "embeddings") if root is None else root), name)


def _files(name: str, root: PathLike | None) -> list[str]:
    folder = _folder(name, root)
    if not os.path.isdir(folder):
        return []
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_file())


class _TokenEmbedding(Vocabulary):
    """A vocabulary with a vector for each token."""

    _vectors: ndarray

    @property
    def vec_len(self) -> int:
        """int: length of the vectors."""
        return self._vectors.shape[1]

    @property
    def idx_to_vec(self) -> ndarray:
        """ndarray, shape (number of tokens, vec_len): the vectors, float32, in the order of the indices."""
        return self._vectors

    def get_vecs_by_tokens(self, tokens: str | Sequence[str], lower_case_backup: bool = False) -> ndarray:
        """Vectors of tokens.

        Parameters
        ----------
        tokens : str or sequence of str
        lower_case_backup : bool
            Look up in lower case what is not indexed as it is.

        Returns
        -------
        ndarray, shape (vec_len,) or (len(tokens), vec_len)
            That of the unknown token where a token is not indexed.
        """
        found = [tokens] if isinstance(tokens, str) else list(tokens)
        if lower_case_backup:
            found = [token if token in self else token.lower() for token in found]
        vectors = self._vectors[np.array(self.to_indices(found), dtype="int64")]
        return vectors[0] if isinstance(tokens, str) else vectors

    def update_token_vectors(self, tokens: str | Sequence[str], new_vectors: Any) -> None:
        """Give tokens other vectors.

        Parameters
        ----------
        tokens : str or sequence of str
        new_vectors : array_like, shape (len(tokens), vec_len)
            ``(vec_len,)`` will do for one token.

        Raises
        ------
        ValueError
            If a token is not indexed or the shape is another.
        """
        found = [tokens] if isinstance(tokens, str) else list(tokens)
        unknown = [token for token in found if token not in self]
        if unknown:
            raise ValueError(
                f"update_token_vectors: {unknown} are not indexed; all such tokens share the vector of "
                f"{self.unknown_token!r}"
            )
        vectors = np.asarray(new_vectors, dtype="float32")
        if len(found) == 1 and vectors.ndim == 1:
            vectors = vectors[None]
        if vectors.shape != (len(found), self.vec_len):
            raise ValueError(
                f"update_token_vectors: `new_vectors` must have shape {(len(found), self.vec_len)}, found "
                f"{vectors.shape}"
            )
        self._vectors[np.array(self.to_indices(found), dtype="int64")] = vectors

    def _read(
        self, path: PathLike, delimiter: str, init_unknown_vec: Callable[..., Any], encoding: str = "utf8"
    ) -> None:
        """Add the tokens and vectors of a file."""
        path = os.path.expanduser(path)
        vectors: dict[str, onp.ndarray] = {}
        width = None
        with open(path, encoding=encoding) as file:
            for number, line in enumerate(file, 1):
                token, row = _token_and_vector(path, number, line.rstrip(), delimiter, width)
                if row.size == 1:
                    warn_at_caller(f"{path}, line {number}: {line.rstrip()!r} is taken as a heading")
                elif width is not None and row.size != width:
                    raise FileFormatError(
                        f"{path}, line {number}: the vector of {token!r} must have {width} numbers as those "
                        f"before, found {row.size}"
                    )
                elif token in vectors:
                    warn_at_caller(f"{path}, line {number}: a second vector of {token!r} is left out")
                else:
                    vectors[token] = row
                    width = row.size
        unknown = vectors.pop(self._unknown_token, None)
        if not vectors or width is None:
            raise FileFormatError(f"{path}: there is no token with a vector")
        if unknown is None:
            unknown = onp.asarray(init_unknown_vec(shape=width), dtype="float32")
        if unknown.shape != (width,):
            raise ValueError(
                f"{path}: the vector of {self._unknown_token!r} must have shape {(width,)}, found {unknown.shape}"
            )
        # Tokens of a counter and reserved ones are indexed already.
        self._idx_to_token += [token for token in vectors if token not in self._token_to_idx]
        self._token_to_idx = {token: index for index, token in enumerate(self._idx_to_token)}
        self._vectors = np.array(onp.stack([vectors.get(token, unknown) for token in self._idx_to_token]))

    def _take(self, vocabulary: Vocabulary, embeddings: Sequence[_TokenEmbedding]) -> None:
        """Become the tokens of a vocabulary, each with its vectors in embeddings, one behind the other."""
        if not isinstance(vocabulary, Vocabulary):
            raise TypeError(
                f"{type(self).__name__}: `vocabulary` must be a Vocabulary, found {type(vocabulary).__name__}"
            )
        rest = vocabulary.idx_to_token[1:]
        parts = [
            np.concatenate([embedding.idx_to_vec[:1], embedding.get_vecs_by_tokens(rest)]) for embedding in embeddings
        ]
        self._vectors = np.concatenate(parts, axis=1)
        self._token_to_idx = dict(vocabulary.token_to_idx)
        self._idx_to_token = list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        self._reserved_tokens = None if vocabulary.reserved_tokens is None else list(vocabulary.reserved_tokens)


def _token_and_vector(path: str, number: int, line: str, delimiter: str, width: int | None) -> tuple[str, onp.ndarray]:
    """The token and the numbers of a line. `width` is how many numbers lines have, if that is known."""
    token, *texts = line.split(delimiter)
    row = _numbers(texts)
    if row is None and width is not None and len(texts) > width:
        # The token has delimiters in it, as ". . ." in files of GloVe.
        token, *last = line.rsplit(delimiter, width)
        row = _numbers(last)
    if row is None or not row.size:
        raise FileFormatError(
            f"{path}, line {number}: a token must be followed by numbers, found {texts if texts else 'none'}"
        )
    return token, row


def _numbers(texts: list[str]) -> onp.ndarray | None:
    try:
        return onp.array(texts, dtype="float32")
    except ValueError:
        return None


_register = registry.get_register_func(_TokenEmbedding, "token embedding")
_create = registry.get_create_func(_TokenEmbedding, "token embedding")


class CustomEmbedding(_TokenEmbedding):
    r"""Vectors of words from a text file.

    Parameters
    ----------
    pretrained_file_path : path
        Each line is a token and the numbers of its vector. A line with one number is a heading. A token may have
        `elem_delim` in it, but for the first one.
    elem_delim : str
        What is between them.
    encoding : str
        Of the file.
    init_unknown_vec : callable of (shape)
        Makes the vector of the unknown token, if the file has none.
    vocabulary : Vocabulary, optional
        Index its tokens instead of those of the file; one without a vector gets that of the unknown token.
    **kwargs
        Arguments of `Vocabulary`. Tokens of `counter` and `reserved_tokens` come before those of the file; one that
        the file does not have gets the vector of the unknown token.

    Attributes
    ----------
    idx_to_vec : ndarray, shape (number of tokens, vec_len)
        The vectors, float32.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileFormatError
        If a line has no numbers or another number of them.

    Notes
    -----
    A second vector of a token is left out with a warning.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'words.txt')
    >>> with open(path, 'w') as file:
    ...     written = file.write('hello 1 2\nworld 3 4\n')
    >>> words = mx.contrib.text.embedding.CustomEmbedding(path)
    >>> words.get_vecs_by_tokens(['world', 'nobody'])
    array([[3., 4.],
           [0., 0.]])
    >>> net = mx.gluon.nn.Embedding(len(words), words.vec_len)
    >>> net.initialize()
    >>> net.weight.set_data(words.idx_to_vec)
    >>> folder.cleanup()
    """

    def __init__(
        self,
        pretrained_file_path: PathLike,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., Any] = np.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._read(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        if vocabulary is not None:
            self._take(vocabulary, [self])


class _NamedEmbedding(CustomEmbedding):
    """Files of one collection, in a folder of its name."""

    _default_name: str

    def __init__(
        self,
        pretrained_file_name: str | None = None,
        embedding_root: PathLike | None = None,
        init_unknown_vec: Callable[..., Any] = np.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        name = type(self).__name__.lower()
        path = os.path.join(_folder(name, embedding_root), pretrained_file_name or self._default_name)
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"{type(self).__name__}: there is no file {path}, and nothing is downloaded; put it there, unpacked. "
                f"Files there: {_files(name, embedding_root) or 'none'}"
            )
        super().__init__(path, init_unknown_vec=init_unknown_vec, vocabulary=vocabulary, **kwargs)


@register
class GloVe(_NamedEmbedding):
    """Vectors of words by GloVe.

    Parameters
    ----------
    pretrained_file_name : str, optional
        A file in the folder ``glove`` of `embedding_root`; ``glove.840B.300d.txt`` by default.
    embedding_root : path, optional
        ``embeddings`` in `mx.base.data_dir()` by default.
    init_unknown_vec, vocabulary, **kwargs
        See `CustomEmbedding`.

    Raises
    ------
    FileNotFoundError
        If there is no such file. Nothing is downloaded.
    FileFormatError
        As `CustomEmbedding`.

    References
    ----------
    J. Pennington, R. Socher, C. Manning, "GloVe: Global Vectors for Word Representation", 2014.

    Examples
    --------
    >>> mx.contrib.text.embedding.GloVe('glove.6B.50d.txt', embedding_root='nowhere')
    Traceback (most recent call last):
    ...
    FileNotFoundError: GloVe: there is no file nowhere/glove/glove.6B.50d.txt, ...
    """

    _default_name = "glove.840B.300d.txt"


@register
class FastText(_NamedEmbedding):
    """Vectors of words by fastText.

    Parameters
    ----------
    pretrained_file_name : str, optional
        A text file in the folder ``fasttext`` of `embedding_root`; ``wiki.simple.vec`` by default.
    embedding_root, init_unknown_vec, vocabulary, **kwargs
        See `GloVe`.

    Raises
    ------
    FileNotFoundError
        If there is no such file. Nothing is downloaded.
    FileFormatError
        As `CustomEmbedding`.

    References
    ----------
    P. Bojanowski et al., "Enriching Word Vectors with Subword Information", 2017.

    Examples
    --------
    >>> mx.contrib.text.embedding.FastText(embedding_root='nowhere')
    Traceback (most recent call last):
    ...
    FileNotFoundError: FastText: there is no file nowhere/fasttext/wiki.simple.vec, ...
    """

    _default_name = "wiki.simple.vec"


class CompositeEmbedding(_TokenEmbedding):
    r"""Vectors of several embeddings, one behind the other, for the tokens of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
    token_embeddings : CustomEmbedding or sequence of them

    Raises
    ------
    TypeError
        If one of them is something else.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'words.txt')
    >>> with open(path, 'w') as file:
    ...     written = file.write('hello 1 2\nworld 3 4\n')
    >>> text = mx.contrib.text
    >>> words, vocabulary = text.embedding.CustomEmbedding(path), text.vocab.Vocabulary(reserved_tokens=['world'])
    >>> text.embedding.CompositeEmbedding(vocabulary, [words, words]).idx_to_vec
    array([[0., 0., 0., 0.],
           [3., 4., 3., 4.]])
    >>> folder.cleanup()
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: _TokenEmbedding | Sequence[_TokenEmbedding]) -> None:
        found = [token_embeddings] if isinstance(token_embeddings, _TokenEmbedding) else list(token_embeddings)
        for embedding in found:
            if not isinstance(embedding, _TokenEmbedding):
                raise TypeError(
                    f"CompositeEmbedding: `token_embeddings` must be embeddings, found {type(embedding).__name__}"
                )
        super().__init__()
        self._take(vocabulary, found)
