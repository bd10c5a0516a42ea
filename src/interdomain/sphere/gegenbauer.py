"""Constants of the polynomials that spherical harmonics are made of, one dimension at a time."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln


def log_seed_norm(dimension: int, degree: int) -> float:
    """log of the factor that makes a harmonic of S^{d-2}, unchanged, orthonormal on S^{d-1}."""
    half = (dimension - 1) / 2
    return float(betaln(0.5, half) - betaln(0.5, degree + half)) / 2


def jacobi_coefficient(dimension: int, seed_degree: int, m: int) -> float:
    """b_m of the orthonormal recurrence ``x p_m = b_{m+1} p_{m+1} + b_m p_{m-1}`` of the
    polynomials that a harmonic of S^{d-2} of degree ``seed_degree`` is multiplied by."""
    lam = seed_degree + (dimension - 2) / 2
    return float(np.sqrt(m * (m - 1 + 2 * lam) / (4 * (m + lam) * (m + lam - 1))))
