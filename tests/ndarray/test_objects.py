"""Memory of array objects: freed ones are reused for new ones, and their classes and weak references end."""

import gc
import resource
import sys
import threading
import weakref

import numpy as onp
import pytest

import mxnet.numpy as np
from mxnet import autograd

MANY = 500


def test_an_object_that_takes_the_memory_of_another_has_nothing_of_it():
    for _ in range(MANY):
        x = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
        view, element = x[0], x[1, 2]
        assert view.base is x and element.base is None and (x + x).base is None
        assert element.ndim == 0 and float(element) == 5.0 and view.tolist() == [0.0, 1.0, 2.0]
        del x, view, element


@pytest.mark.parametrize(
    "make", [lambda: np.zeros(3), lambda: np.zeros(3)[1], lambda: np.zeros((2, 3)).T, lambda: np.zeros(3).sum()]
)
def test_weak_references_die_with_their_array_and_not_with_the_next_one(make):
    dead = []
    for i in range(MANY):
        x = make()
        reference = weakref.ref(x, lambda _, i=i: dead.append(i))
        assert reference() is x
        del x
        assert reference() is None and len(dead) == i + 1
        y = make()
        assert weakref.getweakrefcount(y) == 0


def test_a_view_keeps_what_it_is_of_for_as_long_as_it_lives():
    x = np.arange(4)
    reference = weakref.ref(x)
    view = x[1:]
    del x
    assert reference() is not None and view.base is reference()
    del view
    assert reference() is None


def test_instances_of_derived_classes_end_as_python_ends_them():
    class Named(np.ndarray):
        ended = 0

        def __del__(self):
            Named.ended += 1

    for i in range(MANY):
        x = Named((2,))
        x.name = [x]  # a cycle
        del x
        x = Named((2,))
        x.name = i
        del x, i
    gc.collect()
    assert Named.ended == 2 * MANY


def test_the_class_is_referred_to_as_often_as_there_are_objects():
    def count():
        gc.collect()
        return sys.getrefcount(np.ndarray)

    before = count()
    for _ in range(3):
        held = [np.zeros(2)[i % 2] for i in range(MANY)] + [np.zeros(2) for _ in range(MANY)]
        assert count() >= before + len(held) - 100
        del held
    assert abs(count() - before) <= 100  # of those that are gone, so many may be kept at most


def test_a_derived_class_is_referred_to_by_its_objects_and_ends_after_them():
    class Plain(np.ndarray):
        pass

    class Bare(np.ndarray):
        __slots__ = ("name",)

    def count(classes):
        gc.collect()
        return [sys.getrefcount(c) for c in classes]

    before = count((Plain, Bare))
    held = [c((2,)) for c in (Plain, Bare) for _ in range(MANY)]
    held += [np.zeros(3).view(Plain)[1:] for _ in range(MANY)]  # arrays, which hold what they are views of
    assert count((Plain, Bare)) == [before[0] + 2 * MANY, before[1] + MANY]
    held[0].self = held[0]  # a cycle
    del held
    assert count((Plain, Bare)) == before
    assert all(type(np.zeros(2)) is np.ndarray for _ in range(MANY))
    ended = [weakref.ref(Plain), weakref.ref(Bare)]
    del Plain, Bare
    gc.collect()
    assert [reference() for reference in ended] == [None, None]


class Derived(np.ndarray):
    pass


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x[[0, 1]],
        lambda x: x[x > 0],
        lambda x: x.__setitem__(0, [1, 2]),
        lambda x: x + [1, 2],
        lambda x: x ** [1, 2],
        lambda x: x == "a",
        lambda x: x.flat[[0, 1]],
        lambda x: x.flat.__setitem__(slice(None), [1, 2, 3]),
        lambda x: x.view(Derived) + x.view(Derived),
        lambda x: x.view(Derived)[0],
        lambda x: x.view("int64"),
        lambda x: x.sort(kind="stable"),
        lambda x: x.partition(0),
        lambda x: x.put([0], [1.0]),
        lambda x: list(reversed(x)),
        lambda x: (x[0, 0] * 3, hash(x[0, 0]), round(x[0, 0])),
        lambda x: np.asarray(onp.ones(3))[1:],
        lambda x: np.concatenate([x, [[1, 2]]]),
        lambda x: np.sum([x, x]),
        lambda x: x.sum(axis=0, out=np.zeros(2)),
        lambda x: x.base,
        lambda x: (x.T, x.mT, x.real, x.imag, x.grad, x.flags, x.device, x.__array_interface__),
    ],
)
def test_no_call_keeps_an_array_for_later(call):
    x = np.ones((2, 2))
    call(x)
    before = sys.getrefcount(np.ndarray), sys.getrefcount(Derived)
    for _ in range(MANY):
        call(x)
    assert (sys.getrefcount(np.ndarray), sys.getrefcount(Derived)) == before


def test_objects_take_no_memory_once_they_are_gone():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def work():
        for _ in range(20 * MANY):
            x = np.zeros(4)
            (x[1:], x[2], x + x, x.view(Derived), Derived((3,)))

    work()
    before = resident()
    work()
    assert resident() - before < 1 << 20


def test_an_object_of_a_derived_class_becomes_no_array_of_the_class_itself():
    class Bare(np.ndarray):
        __slots__ = ()

    for x, other in ((Bare((2,)), np.ndarray), (np.zeros(2), Bare)):
        with pytest.raises(TypeError, match="__class__ assignment"):
            x.__class__ = other


def test_a_failed_call_leaves_no_object_behind():
    x = np.arange(3.0)
    before = sys.getrefcount(np.ndarray)
    for _ in range(MANY):
        with pytest.raises(IndexError):
            x[7]
        with pytest.raises(TypeError):
            x[0] + "a"
        with pytest.raises(ValueError, match="shape"):
            x[0] + np.zeros((2, 0)) @ np.zeros((1, 2))
    assert abs(sys.getrefcount(np.ndarray) - before) <= 100


def test_recorded_arrays_end_with_what_they_recorded():
    class Twice(autograd.Function):
        def forward(self, x):
            self.kept = kept[0]
            return x * 2

        def backward(self, dy):
            return dy * 2

    class Marker:
        pass

    kept = []
    for _ in range(20):
        marker = Marker()
        kept[:] = [marker]
        reference = weakref.ref(marker)
        x = np.ones(3)
        x.attach_grad()
        with autograd.record():
            y = Twice()(x)
        y.backward()
        assert x.grad.tolist() == [2.0] * 3
        kept.clear()
        del y, marker
        gc.collect()
        assert reference() is None


def test_arrays_may_end_in_any_thread():
    wrong = []

    def work(k):
        for i in range(MANY):
            x = np.full((3,), k * MANY + i, dtype="int64")
            if [int(e) for e in x] != [k * MANY + i] * 3:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_collector_does_not_look_at_arrays():
    x = np.zeros(3)
    assert not any(gc.is_tracked(y) for y in (x, x[0], x[1:], x + 1))


@pytest.mark.filterwarnings("ignore")  # newer NumPys discourage assigning shapes
@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "T", "real", "imag"])
def test_attributes_are_assigned_to_and_deleted_as_numpys(name):
    assert getattr(np.ndarray, name).__doc__
    for write in (lambda x: setattr(x, name, "no"), lambda x: delattr(x, name)):
        raised = []
        for module in (np, onp):
            with pytest.raises(Exception) as error:
                write(module.zeros((2, 3)))
            raised.append(error.type)
        assert raised[0] is raised[1]


def test_slots_of_derived_classes_are_their_own():
    class Loud(np.ndarray):
        def __len__(self):
            return 77

        def __add__(self, other):
            return "added"

        def __getitem__(self, key):
            return ("got", key)

        def __lt__(self, other):
            return "less"

        def __float__(self):
            return 2.5

        def __bool__(self):
            return False

    x = Loud((2,))
    assert len(x) == 77 and x + 1 == "added" and x[3] == ("got", 3) and (x < 1) == "less"
    assert float(x) == 2.5 and not x
    y = np.ones(2)
    assert (y + x).shape == (2,) and (y * x).shape == (2,) and len(y) == 2

    class Quiet(np.ndarray):
        pass

    z = Quiet((2,))
    z[...] = 3
    assert len(z) == 2 and float(z[0]) == 3.0 and (z + 1).tolist() == [4.0, 4.0] and (z < 4).all() and int(z[1]) == 3


def test_operators_of_elements_know_what_else_there_is():
    class Other:
        def __radd__(self, other):
            return "theirs"

        def __gt__(self, other):
            return "greater"

    x = np.arange(3.0)
    assert x[1] + Other() == "theirs" and (x[1] < Other()) == "greater"
    assert (x[1] == "a") is not True and (x[1] != None) is not False  # noqa: E711
    with pytest.raises(TypeError):
        x[1] < "a"  # noqa: B015
    with pytest.raises(TypeError):
        len(x[1])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)
