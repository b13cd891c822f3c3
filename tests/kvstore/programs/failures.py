"""Two ranks, of which the second ends in one of several ways while the first waits for it."""

import os
import signal
import sys
import threading
import time

way = sys.argv[1]
number = int(os.environ["PMI_RANK"])
if way == "import" and number == 1:
    import a_module_that_is_not_there  # noqa: F401
if way == "quiet" and number == 1:
    sys.exit()

import mxnet as mx  # noqa: E402

is_async = way in ("asynchronous", "server")
store = mx.kv.create("dist_async" if is_async else "dist_sync")
value = mx.np.ones(3)
store.init(0, value)
if is_async:
    store.init(1, value)  # on the second rank
    store.set_optimizer(mx.optimizer.SGD())
    store.pushpull([0, 1], [value, value])
    store._barrier()
if number == 1:
    if way == "server":
        store._server._serve = lambda *_: 1 / 0
    if way in ("error", "asynchronous"):
        raise ZeroDivisionError("of the second rank")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


def interrupt(is_ready):
    """Interrupt the program once it is ready."""
    while not is_ready():
        time.sleep(0.01)
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


# The second rank is interrupted in an operation, the first in code of its own.
if way in ("interrupt", "interrupt all"):
    processes = store._handle._processes
    if number == 1:
        threading.Thread(target=interrupt, args=[lambda: processes._is_busy], daemon=True).start()
    else:
        if way == "interrupt all":
            threading.Thread(target=interrupt, args=[lambda: True], daemon=True).start()
        time.sleep(100)
while True:
    store.pushpull(int(is_async), value)
