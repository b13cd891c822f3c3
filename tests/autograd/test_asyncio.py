"""Modes belong to the thread, and in an event loop to the task: tasks that take turns do not see each other's."""

import asyncio
import contextvars
import gc
import threading

import pytest

from mxnet import autograd, np
from mxnet.error import AutogradError


def modes():
    return autograd.is_recording(), autograd.is_training()


def test_tasks_that_take_turns_keep_their_modes():
    seen = []

    async def recording(name, others):
        with autograd.record():
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append((name, modes()))
            with autograd.pause():
                await asyncio.sleep(0)
                seen.append((name + " paused", modes()))
            await asyncio.sleep(0)
            seen.append((name, modes()))
        await asyncio.sleep(0)
        seen.append((name + " after", modes()))

    async def idle():
        for _ in range(8):
            await asyncio.sleep(0)
            seen.append(("idle", modes()))

    async def main():
        await asyncio.gather(recording("a", 1), idle(), recording("b", 1), idle())
        seen.append(("main", modes()))

    asyncio.run(main())
    expected = {"a": (True, True), "b": (True, True)}
    assert len(seen) == 2 * 6 + 2 * 8 + 1
    for name, found in seen:
        assert found == expected.get(name, (False, False)), name
    assert modes() == (False, False)


def test_only_what_a_task_computes_in_its_block_is_recorded():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()

    async def train(factor):
        with autograd.record():
            y = x * factor
            await asyncio.sleep(0)
            y = (y * x).sum()
        await asyncio.sleep(0)
        return autograd.grad(y, x).asnumpy().tolist()

    async def serve():
        outputs = []
        for _ in range(4):
            outputs.append(x * 2)
            await asyncio.sleep(0)
        return outputs

    async def main():
        return await asyncio.gather(train(1), serve(), train(10))

    one, outputs, ten = asyncio.run(main())
    assert one == [2, 4, 6] and ten == [20, 40, 60]
    for y in outputs:
        with pytest.raises(AutogradError, match="head 0 was not computed while recording"):
            y.backward()


def test_tasks_inherit_the_modes_of_the_block_that_made_them_until_it_is_left():
    seen = {}

    async def note(name):
        await asyncio.sleep(0)
        seen[name] = modes()

    async def made_inside(left):
        await asyncio.sleep(0)
        seen["made in a block"] = modes()
        await left.wait()
        seen["its block was left"] = modes()
        with autograd.pause(train_mode=True):
            await asyncio.sleep(0)
            seen["in its own block"] = modes()

    async def main():
        await note("main")
        left = asyncio.Event()
        with autograd.pause(train_mode=True):
            task = asyncio.create_task(made_inside(left))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        left.set()
        await task
        await note("after")

    with autograd.record(train_mode=False):
        asyncio.run(main())
        assert modes() == (True, False)
    assert seen == {
        "main": (True, False),
        "made in a block": (False, True),
        "its block was left": (True, False),
        "in its own block": (False, True),
        "after": (True, False),
    }
    assert modes() == (False, False)


def test_one_scope_object_serves_several_tasks():
    scope, seen = autograd.record(), []

    async def turn(steps):
        with scope:
            for _ in range(steps):
                await asyncio.sleep(0)
                seen.append(modes())
            with scope:
                await asyncio.sleep(0)
            seen.append(modes())
        seen.append(tuple(not mode for mode in modes()))

    async def main():
        await asyncio.gather(turn(3), turn(1), turn(2))
        assert modes() == (False, False)

    asyncio.run(main())
    assert len(seen) == 6 + 6 and set(seen) == {(True, True)}
    assert modes() == (False, False)


def test_cancelled_and_abandoned_tasks_leave_no_mode_behind():
    async def wait():
        with autograd.record():
            await asyncio.sleep(3600)

    async def main():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert modes() == (False, False)

    asyncio.run(main())
    assert modes() == (False, False)

    async def begin():
        with autograd.record():
            await asyncio.sleep(0)

    # Begun in one context, closed in another one: the block's context is gone.
    async def other():
        coroutine = begin()
        loop = asyncio.get_running_loop()
        contextvars.Context().run(coroutine.send, None)
        assert modes() == (False, False)
        coroutine.close()
        assert modes() == (False, False)
        assert loop.is_running()

    asyncio.run(other())
    gc.collect()
    assert modes() == (False, False)


def test_setters_in_a_task_switch_its_block_only():
    async def inside():
        with autograd.record():
            assert autograd.set_recording(False) is True
            assert autograd.set_training(False) is True
            await asyncio.sleep(0)
            assert modes() == (False, False)
        assert modes() == (False, False)

    async def outside():
        with autograd.predict_mode():
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert modes() == (False, False)

    async def main():
        await asyncio.gather(inside(), outside())

    asyncio.run(main())
    assert modes() == (False, False)


def test_a_function_written_in_python_pauses_inside_a_backward_pass_of_a_task():
    class Square(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x * x

        def backward(self, dy):
            with autograd.pause():
                assert modes() == (False, False)
                (x,) = self.saved_tensors
                return 2 * x * dy

    async def train(value):
        x = np.array([value])
        x.attach_grad()
        with autograd.record():
            y = Square()(x)
            await asyncio.sleep(0)
            y.backward()
            assert modes() == (True, True)
            await asyncio.sleep(0)
            assert modes() == (True, True)
        return x.grad.item()

    async def main():
        return await asyncio.gather(train(1.0), train(2.0))

    assert asyncio.run(main()) == [2, 4]


def test_a_scope_that_goes_away_without_its_exit_restores_the_modes():
    scope = autograd.record()
    scope.__enter__()
    with autograd.pause():
        scope.__enter__()
    assert modes() == (True, True)
    del scope
    assert modes() == (False, False)

    async def main():
        scope = autograd.record()
        scope.__enter__()
        assert modes() == (True, True)
        del scope
        assert modes() == (False, False)
        with autograd.train_mode():
            assert modes() == (False, True)
        return modes()

    assert asyncio.run(main()) == modes() == (False, False)


def test_a_scope_that_goes_away_on_another_thread_changes_nothing_there():
    scopes = [autograd.pause()]
    scopes[0].__enter__()
    seen = []

    def work():
        with autograd.record():
            scopes.clear()
            seen.append(modes())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, True)]
    assert modes() == (False, False)
