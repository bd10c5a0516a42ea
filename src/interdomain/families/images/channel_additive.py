"""A kernel on colour patches that is a sum over the channels."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import as_integers, items, refusal
from ...core.columns import WholeRows, checked_columns, kernel_method
from ...core.decomposed import DecomposedKernel
from ...core.point_sums import sum_of_terms
from ...linalg.radial_terms import RadialTerm
from .convolutional import one_per_channel


class ChannelAdditive(DecomposedKernel):
    """A kernel on colour patches that is a sum over the channels.

    ``k(z, z') = sum_c k_c(z_c, z'_c)``, with z_c the ``h w`` entries of channel c. As the
    ``base_kernel`` of a :class:`Convolutional`, it gives the multi-channel kernel with weights
    ``w_pc = w_p w_c`` (van der Wilk et al. 2017, eqs. 24 and 25). One set of inducing patches is
    enough for that kernel. The paper's w_c are the variances of the k_c.

    :param base_kernels: The k_c, on ``h w`` columns: one for each channel, or one for all.
    :param patch_shape: ``(h, w, C)``; or ``(h, w)`` if ``base_kernels`` is a list of C kernels.
    :ivar num_channels: The number C of channels.
    :raises ValueError: If ``patch_shape`` or the number of kernels is wrong.
    """

    def __init__(
        self,
        base_kernels: Kernel | Sequence[Kernel],
        patch_shape: Sequence[int],
        *,
        active_dims: Sequence[int] | slice | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        remedy = "pass (h, w, C), in pixels and channels"
        shape = as_integers("patch_shape", patch_shape, remedy)
        if len(shape) == 2 and not isinstance(base_kernels, Kernel):
            rule = "a kernel or a list of kernels"
            shape = (*shape, len(items("base_kernels", base_kernels, rule)))
        if len(shape) != 3 or min(shape) < 1:
            raise refusal("patch_shape", "be three positive integers", f"{patch_shape!r}", remedy)
        self.patch_shape, self.num_channels = shape, shape[2]
        self.base_kernels = one_per_channel(base_kernels, self.num_channels)

    @property
    def kernels(self) -> tuple[ChannelKernel, ...]:
        """One kernel of patches for each channel, which shares the parameters of its k_c."""
        return tuple(ChannelKernel(self, channel) for channel in range(self.num_channels))

    def channel(self, X: TensorType, channel: int) -> tf.Tensor:
        """The columns of X that hold one channel.

        :raises ValueError: If X does not have one column for each entry of a patch.
        """
        height, width, channels = self.patch_shape
        why = f" for patches of shape {self.patch_shape}"
        remedy = "pass patches flattened to rows, channels last"
        return checked_columns(X, height * width * channels, why, remedy)[..., channel::channels]

    def radial_terms(self) -> list[RadialTerm] | None:
        """The kernel as a sum of functions of squared distances; None if it is not one."""
        return sum_of_terms([(part.channel_kernel, part.select) for part in self.kernels], self)


class ChannelKernel(WholeRows):
    """The term of one channel in the sum; :attr:`ChannelAdditive.kernels` builds it.

    :param parent: The whole kernel, whose parameters this kernel uses.
    """

    def __init__(self, parent: ChannelAdditive, channel: int) -> None:
        super().__init__(name=f"{parent.name}_{channel}")
        self.parent, self.index = parent, channel
        self.active_dims = parent.active_dims

    @property
    def channel_kernel(self) -> Kernel:
        """The kernel k_c, on the columns of the channel."""
        kernels = self.parent.base_kernels  # one kernel for each channel, or one for all
        return kernels[self.index % len(kernels)]

    def select(self, X: TensorType) -> tf.Tensor:
        """The columns of X that hold the channel."""
        return self.parent.channel(X, self.index)

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        columns = [None if rows is None else self.select(self.seen(rows)) for rows in (X, X2)]
        return self.channel_kernel(*columns)

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return self.channel_kernel(self.select(self.seen(X)), full_cov=False)
