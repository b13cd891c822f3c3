"""Normalisation layers."""

from __future__ import annotations

from typing import Any

from mxnet import autograd
from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import DTypeLike, dtype_name
from mxnet.error import UnsupportedError
from mxnet.gluon.block import HybridBlock
from mxnet.gluon.parameter import Parameter
from mxnet.numpy import ndarray

__all__ = ["BatchNorm", "GroupNorm", "InstanceNorm", "LayerNorm", "SyncBatchNorm"]


class _Norm(HybridBlock):
    """What the layers have in common: a scale `gamma` and a shift `beta` for each channel."""

    def __init__(
        self, axis: int, epsilon: float, center: bool, scale: bool, beta: Any, gamma: Any, in_channels: int
    ) -> None:
        super().__init__()
        self._axis = axis
        self._epsilon = epsilon
        shape = (in_channels or -1,)
        self.gamma = Parameter(
            "gamma",
            grad_req="write" if scale else "null",
            shape=shape,
            init=gamma,
            allow_deferred_init=True,
            differentiable=scale,
        )
        self.beta = Parameter(
            "beta",
            grad_req="write" if center else "null",
            shape=shape,
            init=beta,
            allow_deferred_init=True,
            differentiable=center,
        )

    def __repr__(self) -> str:
        channels = self.gamma.shape[0] if self.gamma.shape else -1
        parts = [f"axis={self._axis}", f"eps={self._epsilon}"]
        for name in ("momentum", "num_groups"):
            if (option := getattr(self, f"_{name}", None)) is not None:
                parts.append(f"{name}={option}")
        for name, parameter in (("center", self.beta), ("scale", self.gamma)):
            if not parameter._differentiable:
                parts.append(f"{name}=False")
        if getattr(self, "_use_global_stats", False):
            parts.append("use_global_stats=True")
        return f"{type(self).__name__}({', '.join(parts)}, in_channels={max(channels, 0) or None})"

    def infer_shape(self, data: ndarray, *args: Any) -> None:
        """Set the number of channels.

        Parameters
        ----------
        data : ndarray
        """
        if not -data.ndim <= self._axis < data.ndim:
            raise ValueError(f"{type(self).__name__}: an input of shape {tuple(data.shape)} has no axis {self._axis}")
        channels = data.shape[self._axis]
        if channels is None:
            raise UnsupportedError(
                f"{type(self).__name__}: axis {self._axis} of shape {data.shape} is ragged, so it has no number of "
                "channels\n  hint: axis=-1 normalises the last axis"
            )
        for parameter in self._reg_params.values():
            parameter.shape = (channels,)


class BatchNorm(_Norm):
    """Normalises each channel over the batch while training, and by running statistics otherwise.

    Parameters
    ----------
    axis : int
        Axis of the channels.
    momentum : float
        Weight of the old running statistics in an update.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Whether `beta` and `gamma` are learnt; else they stay 0 and 1.
    use_global_stats : bool
        Use the running statistics in training too.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : Initializer or str
    in_channels : int
        0 to find it out from the first input.

    Attributes
    ----------
    gamma, beta, running_mean, running_var : Parameter, shape (in_channels,)

    Notes
    -----
    Parameters stay float32 when the layer is cast to float16.
    Source: S. Ioffe and C. Szegedy, "Batch Normalization", 2015.

    Examples
    --------
    >>> net = mx.gluon.nn.BatchNorm(epsilon=0.0)
    >>> net.initialize()
    >>> with mx.autograd.train_mode():
    ...     net(np.array([[1.0, 10.0], [3.0, 30.0]]))
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(
        self,
        axis: int = 1,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
        in_channels: int = 0,
    ) -> None:
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels)
        self._momentum = momentum
        self._scale = scale
        self._use_global_stats = use_global_stats
        shape = (in_channels or -1,)
        self.running_mean = Parameter(
            "running_mean",
            grad_req="null",
            shape=shape,
            init=running_mean_initializer,
            allow_deferred_init=True,
            differentiable=False,
        )
        self.running_var = Parameter(
            "running_var",
            grad_req="null",
            shape=shape,
            init=running_variance_initializer,
            allow_deferred_init=True,
            differentiable=False,
        )

    def cast(self, dtype: DTypeLike) -> None:
        """Change the dtype of the parameters; float32 in place of float16 and bfloat16, which cannot hold running sums.

        Parameters
        ----------
        dtype : dtype
        """
        super().cast("float32" if dtype_name(dtype) in ("float16", "bfloat16") else dtype)

    def forward(self, x: ndarray) -> ndarray:
        """Normalise a batch and, while training, update the running statistics.

        Parameters
        ----------
        x : ndarray, channels along `axis`

        Returns
        -------
        ndarray, shape of `x`
        """
        device = x.device
        out: ndarray = npx.batch_norm(
            x,
            self.gamma.data(device),
            self.beta.data(device),
            self.running_mean.data(device),
            self.running_var.data(device),
            eps=self._epsilon,
            momentum=self._momentum,
            fix_gamma=not self._scale,
            use_global_stats=self._use_global_stats,
            axis=self._axis,
        )
        return out


class SyncBatchNorm(BatchNorm):
    """Batch normalisation with the statistics of the whole batch, of which each process has a part.

    Parameters
    ----------
    in_channels : int
        0 to find it out from the first input.
    num_devices : int, optional
        On how many devices the batch is: 1 by default, or the number of processes that `mxnet.launch` has started, each
        with a part on one device. Blocks run one device of a process after the other, so that the statistics of several
        devices of one process are not known together: other numbers are refused.
    momentum, epsilon, center, scale, use_global_stats
        See `BatchNorm`.
    beta_initializer, gamma_initializer, running_mean_initializer, running_variance_initializer : Initializer or str

    Raises
    ------
    ValueError
        If `num_devices` is neither 1 nor the number of processes.
    UnsupportedError
        If a block with statistics of several processes is trained as part of a compiled network.

    Notes
    -----
    With several processes each calls the same layers in the same order, forward and in the backward pass. They add up
    sums and squared deviations from the mean; running statistics are the same in each. Parts may differ in size.

    Examples
    --------
    >>> net = mx.gluon.nn.SyncBatchNorm(epsilon=0.0)
    >>> net.initialize()
    >>> with mx.autograd.train_mode():
    ...     net(np.array([[1.0, 10.0], [3.0, 30.0]]))
    array([[-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(
        self,
        in_channels: int = 0,
        num_devices: int | None = None,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        use_global_stats: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones",
    ) -> None:
        self._num_ranks = 1
        if num_devices not in (None, 1):
            from mxnet.kvstore._rank_sums import num_ranks

            self._num_ranks = num_ranks()
            if num_devices != self._num_ranks:
                raise ValueError(
                    f"SyncBatchNorm: `num_devices` must be 1 or the number of processes ({self._num_ranks}), found "
                    f"{num_devices}: keep the batch of a process on one device, or use BatchNorm, whose statistics are "
                    "each device's own"
                )
        super().__init__(
            1,
            momentum,
            epsilon,
            center,
            scale,
            use_global_stats,
            beta_initializer,
            gamma_initializer,
            running_mean_initializer,
            running_variance_initializer,
            in_channels,
        )

    def forward(self, x: ndarray) -> ndarray:
        """Normalise a batch and, while training, update the running statistics.

        Parameters
        ----------
        x : ndarray, channels along axis 1

        Returns
        -------
        ndarray, shape of `x`
        """
        if self._num_ranks == 1 or self._use_global_stats or not autograd.is_training():
            return super().forward(x)
        from mxnet.kvstore._rank_sums import sum_over_ranks

        axes = (0, *range(2, x.ndim))
        channels = (1, -1, *[1] * (x.ndim - 2))
        values = x.astype("float32") if dtype_name(x.dtype) in ("float16", "bfloat16") else x
        # The number of samples comes last.
        count = np.full((1,), x.size / x.shape[1], dtype=values.dtype, device=x.device)
        sums = sum_over_ranks("SyncBatchNorm", np.concatenate([values.sum(axis=axes), count]))
        mean, count = sums[:-1] / sums[-1], sums[-1:]
        deviations = values - mean.reshape(channels)
        var = sum_over_ranks("SyncBatchNorm", (deviations**2).sum(axis=axes)) / count
        with autograd.pause():
            for running, found in ((self.running_mean, mean), (self.running_var, var)):
                array = running.data(x.device)
                array[:] = self._momentum * array + (1 - self._momentum) * found
        out = deviations / np.sqrt(var + self._epsilon).reshape(channels)
        if self._scale:
            out = out * self.gamma.data(x.device).reshape(channels)
        return (out + self.beta.data(x.device).reshape(channels)).astype(x.dtype)


class LayerNorm(_Norm):
    """Normalises along one axis.

    Parameters
    ----------
    axis : int
    epsilon : float
        Added to the variance.
    center, scale : bool
        Whether `beta` and `gamma` are learnt; else they stay 0 and 1.
    beta_initializer, gamma_initializer : Initializer or str
    in_channels : int
        Size of the axis; 0 to find it out from the first input.

    Attributes
    ----------
    gamma, beta : Parameter, shape (in_channels,)

    Notes
    -----
    Source: J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer Normalization", 2016.

    Examples
    --------
    >>> net = mx.gluon.nn.LayerNorm(epsilon=0.0)
    >>> net.initialize()
    >>> net(np.array([[1.0, 3.0], [10.0, 30.0]]))
    array([[-1.,  1.],
           [-1.,  1.]])
    """

    def __init__(
        self,
        axis: int = -1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
    ) -> None:
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels)

    def forward(self, data: ndarray) -> ndarray:
        """Normalise `data`, any shape; returns an array of that shape."""
        device = data.device
        gamma, beta = self.gamma.data(device), self.beta.data(device)
        out: ndarray = npx.layer_norm(data, gamma, beta, axis=self._axis, eps=self._epsilon)
        return out


class GroupNorm(_Norm):
    """Normalises each sample over groups of channels.

    Parameters
    ----------
    num_groups : int
        Divides the number of channels.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Whether `beta` and `gamma` are learnt; else they stay 0 and 1.
    beta_initializer, gamma_initializer : Initializer or str
    in_channels : int
        0 to find it out from the first input.

    Attributes
    ----------
    gamma, beta : Parameter, shape (in_channels,)

    Notes
    -----
    Source: Y. Wu and K. He, "Group Normalization", 2018.

    Examples
    --------
    >>> net = mx.gluon.nn.GroupNorm(num_groups=2, epsilon=0.0)
    >>> net.initialize()
    >>> net(np.array([[[1.0], [3.0], [10.0], [30.0]]])).ravel()
    array([-1.,  1., -1.,  1.])
    """

    def __init__(
        self,
        num_groups: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
    ) -> None:
        super().__init__(1, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels)
        self._num_groups = num_groups

    def forward(self, data: ndarray) -> ndarray:
        """Normalise `data` of shape ``(n, c, ...)``; returns an array of that shape."""
        device = data.device
        gamma, beta = self.gamma.data(device), self.beta.data(device)
        out: ndarray = npx.group_norm(data, gamma, beta, num_groups=self._num_groups, eps=self._epsilon)
        return out


class InstanceNorm(_Norm):
    """Normalises each channel of each sample.

    Parameters
    ----------
    axis : int
        Axis of the channels.
    epsilon : float
        Added to the variance.
    center, scale : bool
        Whether `beta` and `gamma` are learnt; else they stay 0 and 1.
    beta_initializer, gamma_initializer : Initializer or str
    in_channels : int
        0 to find it out from the first input.

    Attributes
    ----------
    gamma, beta : Parameter, shape (in_channels,)

    Notes
    -----
    Source: D. Ulyanov, A. Vedaldi and V. Lempitsky, "Instance Normalization", 2016.

    Examples
    --------
    >>> net = mx.gluon.nn.InstanceNorm(epsilon=0.0)
    >>> net.initialize()
    >>> net(np.array([[[1.0, 3.0], [10.0, 30.0]]]))
    array([[[-1.,  1.],
            [-1.,  1.]]])
    """

    def __init__(
        self,
        axis: int = 1,
        epsilon: float = 1e-5,
        center: bool = True,
        scale: bool = False,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        in_channels: int = 0,
    ) -> None:
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels)

    def forward(self, x: ndarray) -> ndarray:
        """Normalise `x`, samples along axis 0; returns an array of that shape."""
        device = x.device
        gamma, beta = self.gamma.data(device), self.beta.data(device)
        # One channel per group is the group norm whose groups are the instances.
        moved = x if self._axis % x.ndim == 1 else x.swapaxes(1, self._axis)
        out: ndarray = npx.group_norm(moved, gamma, beta, num_groups=moved.shape[1], eps=self._epsilon)
        return out if moved is x else out.swapaxes(1, self._axis)
