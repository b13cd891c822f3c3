"""Views with strides of their own."""

from mxnet.numpy._broadcasting import as_strided, sliding_window_view

__all__ = ["as_strided", "sliding_window_view"]
