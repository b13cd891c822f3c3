"""Kernels of CUDA devices give what those of the CPU give: on the emulator, which runs their texts on the processor."""

import json
import pathlib
import subprocess
import sys

import pytest

import cuda_emulator

pytestmark = pytest.mark.skipif(cuda_emulator.compiler() is None, reason="needs g++")

HERE = pathlib.Path(__file__).parent
FAMILIES = {
    "indices": """
        gather scatter_add index_assign index_accumulate index_spread diagonal_spread window_spread
        window_assign gather_along scatter_along chosen resolve_indices wrapped_indices one_hot_rows
    """,
    "orders": """
        sort_rows partition_rows argsort_rows topk_rows topk_mask lexsort_rows select_rows
        argselect_rows select_each argselect_each search_sorted contains bin_numbers bin_counts
    """,
    "products": """
        matmul conjugated_dot fully_connected fully_connected_relu convolution
        convolution_data_gradient convolution_weight_gradient convolve correlate sliding_dot
    """,
    "networks": """
        pooling pooling_gradient pooling_select attention attention_gradient rnn_layer
        rnn_layer_gradient split_vector cross_entropy cross_entropy_gradient ctc_paths
        ctc_paths_gradient
        sldwin_atten_score sldwin_atten_context sldwin_atten_spread dropout_mask checked_parameter wald_path
    """,
    "optimizers": """
        fused_sgd fused_nag fused_adam fused_adamw fused_rmsprop fused_adagrad
    """,
    "boxes": """
        match_pairs box_nms_order roi_largest roi_align roi_align_spread
    """,
    "ragged": """
        ragged_sum ragged_prod ragged_max ragged_min ragged_cumsum ragged_softmax ragged_log_softmax
        ragged_softmax_gradient ragged_expand ragged_pad ragged_unpad ragged_argsort ragged_matmul
        ragged_outer
    """,
    "sparse": """
        segment_max segment_min
        csr_rows csr_transpose coo_order csr_find csr_find_points gather_or_zero scatter_or_skip
        csr_matmul_dense csr_sampled_dense csr_transposed_matmul_dense csr_sampled_matmul
    """,
    "factors": """
        cholesky_lower solve_triangular solve_stacks inverse det slogdet
    """,
}


def output(program, *arguments):
    done = subprocess.run(
        [sys.executable, HERE / program, *arguments],
        env=cuda_emulator.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_of_the_entries_give_what_the_cpu_gives(family):
    assert output("cuda_calls.py", *FAMILIES[family].split()) == {}


def test_tiles_dtypes_streams_and_wrong_values():
    found = output("cuda_cases.py")
    assert found["problems"] == []
    assert found["compared"] > 120
