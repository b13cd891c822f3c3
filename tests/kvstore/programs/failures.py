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

store = mx.kv.create("dist_async" if way == "asynchronous" else "dist_sync")
value = mx.np.ones(3)
store.init(0, value)
if way == "asynchronous":
    store.set_optimizer(mx.optimizer.SGD())
    store.pushpull(0, value)
if number == 1:
    if way in ("error", "asynchronous"):
        raise ZeroDivisionError("of the second rank")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
if way == "interrupt":
    # One rank is in an operation, the other in code of its own.
    threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
    if number == 0:
        time.sleep(100)
while True:
    store.pushpull(0, value)
