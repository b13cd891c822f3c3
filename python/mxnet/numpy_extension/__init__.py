"""What a network needs beyond NumPy's interface."""

from __future__ import annotations

from mxnet import _core
from mxnet.numpy_extension import random as random
from mxnet.numpy_extension._ctc import ctc_loss as ctc_loss
from mxnet.numpy_extension._files import load as load
from mxnet.numpy_extension._files import save as save
from mxnet.numpy_extension._files import savez as savez

globals().update(_core.namespaces["npx"])
