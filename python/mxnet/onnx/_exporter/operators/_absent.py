"""Operators without a translation: why, and what to do instead."""

from __future__ import annotations

__all__ = ["REASONS"]

_SPARSE = (
    *("concatenated_ranges", "coo_order", "csr_add", "csr_check", "csr_find", "csr_find_points", "csr_matmul"),
    *("csr_matmul_dense", "csr_merge", "csr_rows", "csr_sampled_dense", "csr_sampled_matmul", "csr_transpose"),
    *("csr_transposed_matmul_dense", "gather_or_zero", "scatter_or_skip", "segment_max", "segment_min"),
)
_RAGGED = (
    *("ragged_argsort", "ragged_attention", "ragged_attention_gradient", "ragged_cumsum", "ragged_expand"),
    *("ragged_log_softmax", "ragged_matmul", "ragged_max", "ragged_min", "ragged_outer", "ragged_pad"),
    *("ragged_prod", "ragged_softmax", "ragged_softmax_gradient", "ragged_sum", "ragged_unpad"),
)
_SPECIAL = (
    *("beta_density", "betainc", "betainc_slope_a", "betainc_slope_b", "betaincc", "betainccinv", "betaincinv"),
    *("bitwise_count", "digamma", "erfcinv", "erfinv", "exponent", "gamma_density", "gamma_function"),
    *("gamma_slope", "gammainc", "gammainc_slope", "gammaincc", "gammainccinv", "gammaincinv", "gammaln", "gcd"),
    *("i0", "i1", "lcm", "mantissa", "nextafter", "packbits", "polygamma", "spacing", "unpackbits"),
)
_GRADIENTS = (
    *("attention_gradient", "batch_norm_gradient", "convolution_weight_gradient", "cross_entropy_gradient"),
    *("ctc_paths_gradient", "elu_grad", "gelu_erf_grad", "gelu_tanh_grad", "leaky_grad", "pooling_gradient"),
    *("pooling_select", "relu_grad", "rnn_layer_gradient", "roi_align_spread", "row_norm_gradient"),
    *("sigmoid_grad", "silu_grad", "sldwin_atten_spread", "softmax_gradient", "softplus_grad", "tanh_grad"),
    "wald_path",
)
_TRAINING = (
    *("batch_norm_training", "fused_adagrad", "fused_adam", "fused_adamw", "fused_nag", "fused_rmsprop"),
    "fused_sgd",
)
_FACTORISATIONS = (
    *("cholesky_lower", "cofactors", "eig_complex", "eigh", "eigvals_complex", "eigvalsh_of", "inverse", "pinv"),
    *("polynomial_division", "qr", "qr_raw", "solve_stacks", "solve_triangular", "svd", "svdvals"),
)
_COUNTED = (
    *("bin_counts", "bin_numbers", "bincount", "nonzero", "nonzero_matrix", "unique_parts", "unique_runs"),
    "unique_sorted",
)
_SEQUENTIAL = (
    *("box_nms_order", "ctc_paths", "match_pairs", "roi_largest"),
    *("sldwin_atten_context", "sldwin_atten_score"),
)
_RANDOM = (
    *("multinomial", "random_angles", "random_counts", "random_different", "random_gamma"),
    *("random_multivariate_hypergeometric", "random_order", "random_reordered"),
)

# Names, what ONNX does not have, and what to do instead.
REASONS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (_SPARSE, "ONNX has no operators for sparse arrays", "convert it to a dense array"),
    (_RAGGED, "ONNX has no operators for ragged arrays", "pad the rows and use masks"),
    (_SPECIAL, "ONNX has no operator for this function", "compute it before or after the exported network"),
    (_GRADIENTS, "gradients are not exported", "export the network without the part that differentiates"),
    (_TRAINING, "a model is for prediction", "leave training mode before the call"),
    (_FACTORISATIONS, "ONNX has no factorisations of matrices", "compute it before or after the exported network"),
    (("complex_of", "fft_lines", "irfft_lines", "rfft_lines"), "ONNX has no operators for complex numbers",
     "multiply by the sines and cosines of the transform"),
    (("apply_at", "fold", "fold_segments", "fold_steps"), "ONNX cannot fold by any function", "use a reduction"),
    (_COUNTED, "the result depends on counts of values", "compute it after the exported network"),
    (_SEQUENTIAL, "ONNX has no operator for it", "compute it after the exported network"),
    (("calibrate_entropy",), "ONNX has no operator for it", "calibrate before the export"),
    (_RANDOM, "ONNX has no samples of this distribution", "pass what is drawn as an argument"),
)  # fmt: skip
