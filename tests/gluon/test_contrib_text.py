"""Vocabularies and vectors of words of `mx.contrib.text`; the numbers are what MXNet 2.0.0b1 gave."""

from collections import Counter

import numpy as onp
import pytest

import mxnet as mx
from mxnet import np
from mxnet.contrib import text
from mxnet.error import FileFormatError

COUNTER = Counter(["c", "c", "c", "b", "b", "b", "a", "a", "some_word$"])


def test_tokens_are_counted():
    source = " Life is great ! \n life is good . \n"
    count = text.utils.count_tokens_from_str
    assert count(source, " ", "\n", to_lower=True) == {"!": 1, ".": 1, "good": 1, "great": 1, "is": 2, "life": 2}
    assert count("*Life*is*great*!*\n*life*is*good*.*\n", r"\*", "\n")["Life"] == 1
    counter = Counter({"life": 2})
    assert count(source, counter_to_update=counter) is counter
    assert counter["life"] == 3


@pytest.mark.parametrize(
    ("arguments", "tokens"),
    [
        ({"most_freq_count": None}, ["<unk>", "b", "c", "a", "some_word$"]),
        ({"most_freq_count": 1}, ["<unk>", "b"]),
        ({"most_freq_count": 0}, ["<unk>"]),
        ({"min_freq": 2}, ["<unk>", "b", "c", "a"]),
        ({"min_freq": 100}, ["<unk>"]),
        ({"most_freq_count": 2, "unknown_token": "b", "reserved_tokens": ["<pad>"]}, ["b", "<pad>", "c", "a"]),
        ({"reserved_tokens": ["a", "z"]}, ["<unk>", "a", "z", "b", "c", "some_word$"]),
    ],
)
def test_vocabulary(arguments, tokens):
    vocabulary = text.vocab.Vocabulary(COUNTER, **arguments)
    assert len(vocabulary) == len(tokens)
    assert vocabulary.idx_to_token == tokens
    assert vocabulary.token_to_idx == {token: index for index, token in enumerate(tokens)}
    assert vocabulary.unknown_token == tokens[0]
    assert vocabulary.reserved_tokens == arguments.get("reserved_tokens")
    assert vocabulary.to_tokens(vocabulary.to_indices(tokens)) == tokens
    assert vocabulary.to_indices("nobody") == 0
    assert vocabulary.to_tokens(0) == tokens[0]


def test_vocabulary_without_words():
    vocabulary = text.vocab.Vocabulary()
    assert vocabulary.idx_to_token == ["<unk>"]
    assert vocabulary.reserved_tokens is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"counter": {"a": 1}}, TypeError),
        ({"min_freq": 0}, ValueError),
        ({"reserved_tokens": ["a", "a"]}, ValueError),
        ({"reserved_tokens": ["<unk>"]}, ValueError),
        ({"reserved_tokens": "pad"}, TypeError),
        ({"most_freq_count": -1}, ValueError),
    ],
)
def test_wrong_arguments_of_a_vocabulary(arguments, error):
    with pytest.raises(error, match="Vocabulary"):
        text.vocab.Vocabulary(**arguments)


@pytest.mark.parametrize("indices", [onp.int64(1), onp.array(1), np.array(1)])
def test_indices_of_arrays(indices):
    vocabulary = text.vocab.Vocabulary(COUNTER)
    assert vocabulary.to_tokens(indices) == "b"
    for listed in ([indices], (indices,), onp.array([1]), np.array([1])):
        assert vocabulary.to_tokens(listed) == ["b"]


@pytest.mark.parametrize("index", [-1, 5, 1.0, True, onp.array(1.0), [0, 9], [[0]]])
def test_wrong_indices(index):
    with pytest.raises(ValueError, match="from 0 to 4"):
        text.vocab.Vocabulary(COUNTER).to_tokens(index)


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("a 0.1 0.2 0.3\nb 1.1 1.2 1.3\nc 2.1 2.2 2.3\n")
    return path


def test_vectors_of_a_file(words):
    embedding = text.embedding.CustomEmbedding(str(words), init_unknown_vec=np.ones)
    assert embedding.idx_to_token == ["<unk>", "a", "b", "c"]
    assert embedding.vec_len == 3
    expected = onp.array([[1, 1, 1], [0.1, 0.2, 0.3], [1.1, 1.2, 1.3], [2.1, 2.2, 2.3]], dtype="float32")
    assert (embedding.idx_to_vec.asnumpy() == expected).all()
    assert (embedding.get_vecs_by_tokens("b").asnumpy() == expected[2]).all()
    assert (embedding.get_vecs_by_tokens(["c", "C", "no"]).asnumpy() == expected[[3, 0, 0]]).all()
    assert (
        embedding.get_vecs_by_tokens(["c", "C", "no"], lower_case_backup=True).asnumpy() == expected[[3, 3, 0]]
    ).all()


def test_vectors_can_be_changed(words):
    embedding = text.embedding.CustomEmbedding(str(words))
    embedding.update_token_vectors(["a", "<unk>"], np.array([[2, 3, 4], [5, 6, 7]]))
    embedding.update_token_vectors("b", np.array([8.0, 9, 10]))
    assert embedding.idx_to_vec[:3].tolist() == [[5, 6, 7], [2, 3, 4], [8, 9, 10]]
    for tokens, vectors in (("nobody", [0, 0, 0]), ("a", [0, 0]), (["a", "b"], [[0, 0, 0]])):
        with pytest.raises(ValueError, match="update_token_vectors"):
            embedding.update_token_vectors(tokens, np.array(vectors))
    assert embedding.idx_to_vec[1].tolist() == [2, 3, 4]


def test_a_file_may_have_the_unknown_token_and_a_heading(tmp_path):
    path = tmp_path / "own"
    path.write_text("2 2\na;1;2\n<unk>;5;6\nb;3;4\na;9;9\n".replace("2 2", "2;2"), encoding="utf-16")
    with pytest.warns(UserWarning, match="heading|second vector") as found:
        embedding = text.embedding.CustomEmbedding(path, elem_delim=";", encoding="utf-16")
    assert len(found) == 2
    assert embedding.idx_to_vec.tolist() == [[5, 6], [1, 2], [3, 4]]


@pytest.mark.filterwarnings("error")
def test_tokens_of_counters_and_reserved_ones_get_the_vectors_of_the_file(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("a 1 2\nb 3 4\nc 5 6\n<unk> 7 8\n")
    embedding = text.embedding.CustomEmbedding(path, counter=Counter(["b", "z"]), reserved_tokens=["c", "<pad>"])
    assert embedding.idx_to_token == ["<unk>", "c", "<pad>", "b", "z", "a"]
    assert embedding.idx_to_vec.tolist() == [[7, 8], [5, 6], [7, 8], [3, 4], [7, 8], [1, 2]]
    assert embedding.to_indices(embedding.idx_to_token) == list(range(6))


def test_tokens_may_have_delimiters_in_them(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("a 1 2\n. . . 3 4\nat name@domain.com 5 6\n")
    embedding = text.embedding.CustomEmbedding(path)
    assert embedding.idx_to_token == ["<unk>", "a", ". . .", "at name@domain.com"]
    assert embedding.idx_to_vec.tolist() == [[0, 0], [1, 2], [3, 4], [5, 6]]


def test_warnings_name_the_line_of_the_program(tmp_path):
    (tmp_path / "fasttext").mkdir()
    path = tmp_path / "fasttext" / "wiki.simple.vec"
    path.write_text("a 1 2\na 1 2\n")
    embedding = text.embedding
    for make in (
        lambda: embedding.CustomEmbedding(path),
        lambda: embedding.FastText(embedding_root=tmp_path),
        lambda: embedding.create("fasttext", embedding_root=tmp_path),
    ):
        with pytest.warns(UserWarning, match="second vector") as found:
            make()
        assert [warning.filename for warning in found] == [__file__]


def test_vectors_for_a_vocabulary(words):
    vocabulary = text.vocab.Vocabulary(Counter(["c", "c", "z", "a"]), reserved_tokens=["<pad>"])
    embedding = text.embedding.CustomEmbedding(words, vocabulary=vocabulary)
    assert embedding.idx_to_token == ["<unk>", "<pad>", "c", "a", "z"]
    assert embedding.reserved_tokens == ["<pad>"]
    onp.testing.assert_array_equal(
        embedding.idx_to_vec.asnumpy(), onp.float32([[0] * 3, [0] * 3, [2.1, 2.2, 2.3], [0.1, 0.2, 0.3], [0] * 3])
    )
    both = text.embedding.CompositeEmbedding(vocabulary, [embedding, embedding])
    assert both.vec_len == 6
    assert (both.idx_to_vec == np.concatenate([embedding.idx_to_vec] * 2, axis=1)).all()
    with pytest.raises(TypeError, match="Vocabulary"):
        text.embedding.CustomEmbedding(words, vocabulary=["a"])
    with pytest.raises(TypeError, match="embeddings"):
        text.embedding.CompositeEmbedding(vocabulary, [vocabulary])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2\nb 1\xa03\n", "line 2: a token must be followed by numbers"),
        ("a 1 2\nb\n", "line 2: a token must be followed by numbers, found none"),
        ("a 1 2\nb 1 2 3\n", "must have 2 numbers as those before, found 3"),
        ("", "no token with a vector"),
        ("<unk> 1 2\n", "no token with a vector"),
        ("a 1 2\n<unk> 1 2 3\n", "must have 2 numbers as those before, found 3"),
        (". . . 3 4\n", "line 1: a token must be followed by numbers"),
    ],
)
def test_broken_files_are_refused(tmp_path, content, message):
    path = tmp_path / "broken"
    path.write_text(content)
    with pytest.raises(FileFormatError, match=message):
        text.embedding.CustomEmbedding(path)


def test_collections_are_read_from_local_folders(tmp_path, monkeypatch, words):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    (tmp_path / "embeddings" / "fasttext").mkdir(parents=True)
    words.rename(tmp_path / "embeddings" / "fasttext" / "wiki.simple.vec")
    assert text.embedding.get_pretrained_file_names("FastText") == ["wiki.simple.vec"]
    assert text.embedding.get_pretrained_file_names()["glove"] == []
    for embedding in (text.embedding.FastText(), text.embedding.create("fastText")):
        assert embedding.get_vecs_by_tokens("a").tolist() == pytest.approx([0.1, 0.2, 0.3])
    with pytest.raises(FileNotFoundError, match="nothing is downloaded"):
        text.embedding.create("glove", pretrained_file_name="glove.6B.50d.txt")
    with pytest.raises(KeyError, match="embedding_name"):
        text.embedding.get_pretrained_file_names("word2vec")


def test_classes_of_ones_own(words):
    @text.embedding.register
    class OneOfMine(text.embedding.CustomEmbedding):
        def __init__(self, path=words):
            super().__init__(path)

    assert isinstance(text.embedding.create("oneofmine"), OneOfMine)
    with pytest.raises(TypeError, match="register"):
        text.embedding.register(Counter)


def test_a_network_starts_with_the_vectors(words):
    embedding = text.embedding.CustomEmbedding(words)
    layer = mx.gluon.nn.Embedding(len(embedding), embedding.vec_len)
    layer.initialize()
    layer.weight.set_data(embedding.idx_to_vec)
    indices = np.array(embedding.to_indices(["c", "a"]))
    assert (layer(indices) == embedding.get_vecs_by_tokens(["c", "a"])).all()
