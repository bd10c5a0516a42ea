"""Kernels on images that compare patches.

Use :class:`Convolutional` for functions that sum one patch-response function over all patches of an
image, with :class:`interdomain.inducing_variables.InducingPatches`. For colour images there are
also :class:`MultiChannelConvolutional` (a function for each channel) and :class:`ChannelAdditive`
(an additive base kernel on patches of all channels).
"""

from .channel_additive import ChannelAdditive
from .images import Convolutional, MultiChannelConvolutional

__all__ = ["ChannelAdditive", "Convolutional", "MultiChannelConvolutional"]
