"""What a network needs beyond NumPy's interface."""

from __future__ import annotations

from mxnet import _core
from mxnet.device import Device as Device
from mxnet.device import cpu as cpu
from mxnet.device import current_device as current_device
from mxnet.device import gpu as gpu
from mxnet.device import num_gpus as num_gpus
from mxnet.dlpack import from_dlpack as from_dlpack
from mxnet.dlpack import from_numpy as from_numpy
from mxnet.dlpack import to_dlpack_for_read as to_dlpack_for_read
from mxnet.dlpack import to_dlpack_for_write as to_dlpack_for_write
from mxnet.engine import wait_all as waitall
from mxnet.numpy_extension import random as random
from mxnet.numpy_extension._ctc import ctc_loss as ctc_loss
from mxnet.numpy_extension._files import load as load
from mxnet.numpy_extension._files import save as save
from mxnet.numpy_extension._files import savez as savez
from mxnet.util import is_np_array as is_np_array
from mxnet.util import is_np_default_dtype as is_np_default_dtype
from mxnet.util import is_np_shape as is_np_shape
from mxnet.util import set_np as set_np
from mxnet.util import set_np_default_dtype as set_np_default_dtype

globals().update(_core.namespaces["npx"])
