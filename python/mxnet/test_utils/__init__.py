"""Tools for tests of array programs: comparisons, random arrays, numeric gradients.

``from mxnet.test_utils import *`` also gives what test files of older programs take from here: the modules `mx`, `np`
(NumPy, the oracle, not `mxnet.numpy`), `npx`, `npt` (`numpy.testing`), `os` and `sys`, the devices and the NumPy
switches.
"""

import os
import sys

import numpy as np
import numpy.testing as npt

import mxnet as mx
from mxnet import numpy_extension as npx
from mxnet._renamed import attribute_finder, old_function
from mxnet.device import Device, cpu, current_device, gpu
from mxnet.test_utils.comparison import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    assert_exception,
    checkShapes,
    compare_ndarray_tuple,
    locationError,
    same,
    same_array,
)
from mxnet.test_utils.data import (
    collapse_sum_like,
    create_2d_np_tensor,
    create_2d_tensor,
    create_vector,
    np_reduce,
    rand_coord_2d,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    random_sample,
    random_uniform_arrays,
)
from mxnet.test_utils.defaults import (
    default_atols,
    default_device,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    set_default_device,
)
from mxnet.test_utils.dummy_iter import DummyIter
from mxnet.test_utils.gradients import (
    check_gluon_hybridize_consistency,
    check_numeric_gradient,
    compare_optimizer,
    compare_optimizer_noise_seeded,
)
from mxnet.test_utils.matrices import (
    new_matrix_with_real_eigvals_2d,
    new_matrix_with_real_eigvals_nd,
    new_orthonormal_matrix_2d,
    new_sym_matrix_with_real_eigvals_2d,
    new_sym_matrix_with_real_eigvals_nd,
)
from mxnet.test_utils.running import check_consistency, check_speed, numeric_grad
from mxnet.test_utils.statistics import (
    chi_square_check,
    gen_buckets_probs_with_ppf,
    mean_check,
    var_check,
    verify_generator,
)
from mxnet.test_utils.surroundings import environment, is_op_runnable, list_gpus, retry
from mxnet.util import getenv, is_np_array, setenv, use_np, use_np_array, use_np_default_dtype, use_np_shape

__all__ = [
    "numeric_grad",
    "check_speed",
    "check_consistency",
    "Device",
    "DummyIter",
    "cpu",
    "current_device",
    "getenv",
    "gpu",
    "is_np_array",
    "mx",
    "np",
    "npt",
    "npx",
    "os",
    "setenv",
    "sys",
    "use_np",
    "use_np_array",
    "use_np_default_dtype",
    "use_np_shape",
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_almost_equal_ignore_nan",
    "assert_almost_equal_with_err",
    "assert_exception",
    "check_gluon_hybridize_consistency",
    "check_numeric_gradient",
    "collapse_sum_like",
    "compare_ndarray_tuple",
    "compare_optimizer",
    "compare_optimizer_noise_seeded",
    "create_2d_np_tensor",
    "create_vector",
    "default_atols",
    "default_context",
    "default_device",
    "default_dtype",
    "default_numeric_eps",
    "default_rtols",
    "effective_dtype",
    "environment",
    "get_atol",
    "get_rtol",
    "get_tolerance",
    "get_tols",
    "new_matrix_with_real_eigvals_2d",
    "new_matrix_with_real_eigvals_nd",
    "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d",
    "new_sym_matrix_with_real_eigvals_nd",
    "np_reduce",
    "rand_coord_2d",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "random_sample",
    "random_uniform_arrays",
    "retry",
    "same",
    "same_array",
    "set_default_device",
    "checkShapes",
    "locationError",
    "create_2d_tensor",
    "get_etol",
    "is_op_runnable",
    "list_gpus",
    "chi_square_check",
    "gen_buckets_probs_with_ppf",
    "mean_check",
    "var_check",
    "verify_generator",
]

default_context = old_function("default_context", default_device, "default_device")

__getattr__ = attribute_finder(__name__)
