"""What `np.load` makes of npz files."""

from mxnet.numpy._files import NpzFile

__all__ = ["NpzFile"]
