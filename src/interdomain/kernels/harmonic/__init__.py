"""Kernels and groups: the decomposition of an invariant kernel, and invariant functions.

Use :class:`HarmonicKernel` to split a kernel that some transformations leave unchanged into
orthogonal parts, each with inducing points of its own
(:class:`interdomain.inducing_variables.HarmonicInducingPoints`). Use :class:`Invariant` if the
function itself must not change when its input is transformed.
"""

from ._orbit_sums import orbit_sums
from .decomposition import HarmonicComponent, HarmonicKernel
from .invariant import Invariant

__all__ = ["HarmonicComponent", "HarmonicKernel", "Invariant", "orbit_sums"]
