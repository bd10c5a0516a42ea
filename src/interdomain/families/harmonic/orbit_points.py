"""Inducing points of invariant kernels: van der Wilk et al. 2017, Appendix D.3."""

from __future__ import annotations

from ...core.set_kernel import SetInducingVariables


class OrbitInducingPoints(SetInducingVariables):
    """Values ``u = g(z)`` of the base function of :class:`interdomain.kernels.Invariant`.

    ``cov(u, f(x)) = 1/T sum_s k_g(z, G^s x)`` and ``Kuu = k_g(z, z')`` (van der Wilk et al.,
    *Convolutional Gaussian Processes*, 2017, eqs. D.31 and D.32). An entry of Kuf takes T
    evaluations of k_g, where inducing points of f take T^2; an entry of Kuu takes one.

    :param Z: ``[M, D]``, in the space of the data (of the kernel's ``active_dims``).
    :raises ValueError: If Z is not a matrix, or not finite.
    """
