"""Record files: the bytes of the format, readers and writers, damage, processes."""

import os
import pickle
import struct
import threading

import numpy as onp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mxnet as mx
from mxnet import recordio
from mxnet.error import FileFormatError
from mxnet.gluon import data

MAGIC = b"\x0a\x23\xd7\xce"


def written(tmp_path, *records):
    path = tmp_path / "a.rec"
    with recordio.MXRecordIO(path, "w") as file:
        for record in records:
            file.write(record)
    return path


def read_all(path):
    with recordio.MXRecordIO(path, "r") as file:
        return list(iter(file.read, None))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (b"", "0a23d7ce 00000000"),
        (b"abc", "0a23d7ce 03000000 61626300"),
        (b"abcd", "0a23d7ce 04000000 61626364"),
        (b"abcde", "0a23d7ce 05000000 6162636465000000"),
        # Flags 1, 2 and 3 are in the upper three bits: 0x20, 0x40 and 0x60.
        (MAGIC, "0a23d7ce 00000020 0a23d7ce 00000060"),
        (b"abcd" + MAGIC + b"e", "0a23d7ce 04000020 61626364 0a23d7ce 01000060 65000000"),
        (
            MAGIC + b"abcd" + MAGIC + MAGIC,
            "0a23d7ce 00000020 0a23d7ce 04000040 61626364 0a23d7ce 00000040 0a23d7ce 00000060",
        ),
        # Not at a multiple of 4.
        (b"a" + MAGIC, "0a23d7ce 05000000 610a23d7ce000000"),
    ],
)
def test_bytes_of_the_format(tmp_path, record, expected):
    path = written(tmp_path, record, b"xy")
    assert path.read_bytes() == bytes.fromhex(expected + "0a23d7ce 02000000 78790000")
    assert read_all(path) == [record, b"xy"]


@given(st.lists(st.lists(st.sampled_from([MAGIC, MAGIC[:1], MAGIC[1:], b"abcd", b"x"])).map(b"".join)))
def test_records_come_back(tmp_path_factory, records):
    path = written(tmp_path_factory.mktemp("rec"), *records)
    assert read_all(path) == records
    content = path.read_bytes()
    assert len(content) % 4 == 0
    # A reader that looks for the magic word at multiples of 4 finds heads only.
    positions = [i for i in range(0, len(content), 4) if content[i : i + 4] == MAGIC]
    start = 0
    for found in positions:
        assert found == start
        length = struct.unpack("<I", content[found + 4 : found + 8])[0] & (1 << 29) - 1
        start = found + 8 + (length + 3) // 4 * 4
    assert start == len(content)


def test_positions_and_reset(tmp_path):
    path = tmp_path / "a.rec"
    file = recordio.MXRecordIO(path, "w")
    positions = []
    for record in (b"one", b"three", MAGIC):
        positions.append(file.tell())
        file.write(record)
    assert positions == [0, 12, 28]
    file.close()
    file.close()
    reader = recordio.MXRecordIO(path, "r")
    assert (reader.read(), reader.tell(), reader.read()) == (b"one", 12, b"three")
    reader.reset()
    assert reader.read() == b"one"
    reader.close()
    with pytest.raises(ValueError, match=r"read: .*a\.rec is closed"):
        reader.read()


def test_wrong_use_is_refused(tmp_path):
    path = written(tmp_path, b"one")
    with pytest.raises(ValueError, match="`flag` must be 'r' or 'w', found 'a'"):
        recordio.MXRecordIO(path, "a")
    with recordio.MXRecordIO(path, "r") as reader, pytest.raises(ValueError, match="open for reading"):
        reader.write(b"x")
    with recordio.MXRecordIO(path, "w") as writer:
        with pytest.raises(ValueError, match="open for writing"):
            writer.read()
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(writer)
    with pytest.raises(FileNotFoundError):
        recordio.MXRecordIO(tmp_path / "none.rec", "r")


def test_new_file_takes_its_name_when_it_is_whole(tmp_path):
    path = written(tmp_path, b"old")
    writer = recordio.MXRecordIO(path, "w")
    writer.write(b"new")
    assert read_all(path) == [b"old"]
    writer.reset()
    writer.write(b"newer")
    writer.close()
    assert read_all(path) == [b"newer"]

    def fail():
        with recordio.MXRecordIO(path, "w") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert read_all(path) == [b"newer"]
    forgotten = recordio.MXRecordIO(path, "w")
    forgotten.write(b"forgotten")
    del forgotten
    assert read_all(path) == [b"forgotten"]
    assert os.listdir(tmp_path) == ["a.rec"]
    # As other new files: what the mask allows, not what temporary files have.
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_links_are_followed(tmp_path):
    path = written(tmp_path, b"old")
    link = tmp_path / "link.rec"
    link.symlink_to(path)
    with recordio.MXRecordIO(link, "w") as file:
        file.write(b"new")
    assert link.is_symlink()
    assert read_all(path) == [b"new"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-1], r"record at byte 12 should have 8 bytes, but the file has 7"),
        (lambda content: content[:17], r"cut off in the head of a record at byte 12"),
        (
            lambda content: content[:12] + b"abcd" + content[16:],
            r"no record at byte 12: 0x64636261 instead of 0xced7230a",
        ),
        (lambda content: content[:19] + b"\x60" + content[20:], r"part 0 of a record at byte 12 has the flag 3"),
        (lambda content: content[:19] + b"\x20" + content[20:], r"cut off in the head of a record at byte 28"),
        (
            lambda content: content[:19] + b"\x20" + content[20:] + content,
            r"part 1 of a record at byte 28 has the flag 0",
        ),
        (lambda content: content[:19] + b"\xa0" + content[20:], r"has the flag 5"),
    ],
)
def test_damage_is_reported_with_its_position(tmp_path, damage, message):
    path = written(tmp_path, b"one", b"12345678")
    path.write_bytes(damage(path.read_bytes()))
    with recordio.MXRecordIO(path, "r") as reader:
        assert reader.read() == b"one"
        for _ in range(2):
            with pytest.raises(FileFormatError, match=message):
                reader.read()


def indexed(tmp_path, records, **options):
    paths = tmp_path / "a.idx", tmp_path / "a.rec"
    with recordio.MXIndexedRecordIO(*paths, "w", **options) as file:
        for key, record in records.items():
            file.write_idx(key, record)
        assert file.keys == list(records)
    return paths


def test_index_file(tmp_path):
    paths = indexed(tmp_path, {7: b"seven", 3: MAGIC, 5: b""})
    assert paths[0].read_text() == "7\t0\n3\t16\n5\t32\n"
    with recordio.MXIndexedRecordIO(*paths, "r") as file:
        assert (file.keys, file.idx) == ([7, 3, 5], {7: 0, 3: 16, 5: 32})
        assert [file.read_idx(key) for key in (5, 3, 7)] == [b"", MAGIC, b"seven"]
        file.seek(7)
        assert [file.read(), file.tell(), file.read()] == [b"seven", 16, MAGIC]
        with pytest.raises(KeyError, match=r"a\.idx: no record with the key 4"):
            file.read_idx(4)
    assert read_all(paths[1]) == [b"seven", MAGIC, b""]


def test_keys_of_another_type(tmp_path):
    paths = indexed(tmp_path, {"cat": b"1", "dög": b"2"}, key_type=str)
    with recordio.MXIndexedRecordIO(*paths, "r", key_type=str) as file:
        assert file.read_idx("dög") == b"2"
    with pytest.raises(FileFormatError, match=r"a\.idx: line 1 must be a key, a tab and a position, found 'cat"):
        recordio.MXIndexedRecordIO(*paths, "r")
    with recordio.MXIndexedRecordIO(*paths, "w", key_type=str) as file:
        file.write_idx("a", b"")
        with pytest.raises(ValueError, match="key 'a' is in use"):
            file.write_idx("a", b"")
        with pytest.raises(ValueError, match="one line without tabs"):
            file.write_idx("a\tb", b"")


def test_index_that_points_elsewhere(tmp_path):
    paths = indexed(tmp_path, {1: b"one"})
    paths[0].write_text("1\t4\n2\t400\n")
    with recordio.MXIndexedRecordIO(*paths, "r") as file:
        with pytest.raises(FileFormatError, match="no record at byte 4"):
            file.read_idx(1)
        with pytest.raises(FileFormatError, match=r"ends before byte 400, where .*a\.idx has record 2"):
            file.read_idx(2)


def test_dropped_indexed_file_leaves_both_as_they_were(tmp_path):
    paths = indexed(tmp_path, {1: b"one"})
    writer = recordio.MXIndexedRecordIO(*paths, "w")
    writer.write_idx(2, b"two")
    writer.reset()
    with pytest.raises(RuntimeError), writer:
        raise RuntimeError
    with recordio.MXIndexedRecordIO(*paths, "r") as file:
        assert [file.read_idx(key) for key in file.keys] == [b"one"]
    assert sorted(os.listdir(tmp_path)) == ["a.idx", "a.rec"]


def test_pickled_reader_begins_anew(tmp_path):
    paths = indexed(tmp_path, {1: b"one", 2: b"two"})
    reader = recordio.MXIndexedRecordIO(*paths, "r")
    reader.read()
    copy = pickle.loads(pickle.dumps(reader))
    assert (copy.read(), reader.read(), copy.keys) == (b"one", b"two", [1, 2])
    reader.close()
    assert not pickle.loads(pickle.dumps(reader)).is_open
    copy.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_forked_processes_have_positions_of_their_own(tmp_path):
    path = written(tmp_path, b"one", b"two", b"three")
    reader = recordio.MXRecordIO(path, "r")
    reader.read()
    writer = recordio.MXRecordIO(tmp_path / "b.rec", "w")
    writer.write(b"parent")
    child = os.fork()
    if child == 0:
        try:
            assert reader.read() == b"two"
            assert reader.read() == b"three"
            with pytest.raises(RuntimeError, match="opened for writing by process"):
                writer.write(b"child")
            writer.close()
            assert os.listdir(tmp_path).count("b.rec") == 0
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert reader.read() == b"two"
    writer.write(b"more")
    writer.close()
    reader.close()
    assert read_all(tmp_path / "b.rec") == [b"parent", b"more"]


def test_threads_read_by_key_at_once(tmp_path):
    paths = indexed(tmp_path, {key: bytes([key]) * 1000 for key in range(50)})
    wrong = []
    with recordio.MXIndexedRecordIO(*paths, "r") as file:

        def read(order):
            wrong.extend(key for key in order if file.read_idx(key) != bytes([key]) * 1000)

        orders = [onp.random.default_rng(seed).permutation(50).tolist() * 4 for seed in range(4)]
        threads = [threading.Thread(target=read, args=(order,)) for order in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_headers():
    # flag, label, id, id2 as uint32, float32, uint64, uint64, little-endian.
    packed = recordio.pack(recordio.IRHeader(0, 1.5, 7, 2**64 - 1), b"data")
    assert packed == bytes.fromhex("00000000 0000c03f 0700000000000000 ffffffffffffffff") + b"data"
    assert recordio.unpack(packed) == (recordio.IRHeader(0, 1.5, 7, 2**64 - 1), b"data")
    assert recordio.pack((9, 1, 7, 0), b"") == recordio.pack(recordio.IRHeader(0, onp.float32(1), 7, 0), b"")
    for labels in ([1.0, -2.0], onp.array([1, -2]), mx.np.array([1.0, -2.0])):
        packed = recordio.pack(recordio.IRHeader(0, labels, 7, 8), b"data")
        assert (
            packed == bytes.fromhex("02000000 00000000 0700000000000000 0800000000000000 0000803f 000000c0") + b"data"
        )
        header, rest = recordio.unpack(packed)
        assert (header.flag, header.id, header.id2, rest) == (2, 7, 8, b"data")
        assert (header.label.dtype, header.label.tolist()) == (onp.float32, [1.0, -2.0])
        header.label[0] = 5.0


def test_headers_that_do_not_fit():
    with pytest.raises(ValueError, match=r"pack: .* does not fit"):
        recordio.pack(recordio.IRHeader(0, 1.0, -1, 0), b"")
    with pytest.raises(FileFormatError, match="24 bytes, found 23"):
        recordio.unpack(bytes(23))
    with pytest.raises(FileFormatError, match="3 labels need 36 bytes, found 35"):
        recordio.unpack(struct.pack("<IfQQ", 3, 0, 0, 0) + bytes(11))


@pytest.mark.parametrize("shape", [(16, 24, 4), (16, 24, 3), (16, 24)])
def test_images(shape):
    image = (onp.arange(onp.prod(shape)).reshape(shape) % 251).astype("uint8")
    packed = recordio.pack_img(recordio.IRHeader(0, 3.0, 1, 0), image, 9, ".png")
    header, found = recordio.unpack_img(packed)
    assert header.label == 3.0
    assert found.dtype == onp.uint8
    assert (found == image).all()
    assert recordio.unpack_img(packed, iscolor=0)[1].shape == (16, 24)
    assert recordio.unpack_img(packed, iscolor=1)[1].shape == (16, 24, 3)
    # In the file red comes first, as everywhere else.
    if len(shape) == 3:
        rgb = mx.image.imdecode(recordio.unpack(packed)[1]).asnumpy()
        assert (rgb == image[..., 2::-1]).all()


def test_images_packed_with_the_default_quality_are_compressed_well():
    header, image = recordio.IRHeader(0, 3.0, 1, 0), onp.tile(onp.arange(16, dtype="uint8"), (16, 3)).reshape(16, 16, 3)
    packed = recordio.pack_img(header, image, img_fmt=".png")
    assert packed == recordio.pack_img(header, image, 9, ".png")
    assert onp.array_equal(recordio.unpack_img(packed)[1], image)


def test_images_as_jpeg():
    flat = onp.full((16, 16, 3), (10, 120, 230), "uint8")
    header, found = recordio.unpack_img(recordio.pack_img(recordio.IRHeader(0, [1.0, 2.0], 1, 0), flat))
    assert header.label.tolist() == [1.0, 2.0]
    # A flat image has one coefficient a channel; two conversions of colour round once each, by at most 2 levels.
    assert abs(found.astype(int) - flat).max() <= 2


def test_dataset(tmp_path):
    _, path = indexed(tmp_path, {5: b"five", 1: b"one", 9: b"nine"})
    dataset = data.RecordFileDataset(path)
    assert list(dataset) == [b"five", b"one", b"nine"]
    assert (len(dataset), dataset[-1]) == (3, b"nine")
    for options in ({}, {"thread_pool": True}):
        loader = data.DataLoader(dataset, 2, num_workers=2, batchify_fn=data.batchify.AsList(), **options)
        assert list(loader) == [[b"five", b"one"], [b"nine"]]
    with pytest.raises(FileNotFoundError, match=r"b\.idx"):
        data.RecordFileDataset(tmp_path / "b.rec")
