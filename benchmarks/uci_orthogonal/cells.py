"""The cells of the table: data sets, kernels, inducing variables, sizes, and ways to find q."""

from __future__ import annotations

KERNELS = ("arc_cosine", "matern52", "arc_cosine_isotropic", "matern52_euclidean")
INDUCING = ("relu", "softplus", "points")
SIZES = ((128, 0), (128, 128), (256, 0))  # (M, K)
ROUTES = ("optimal", "whitened", "unwhitened")

# Data set: (splits, iterations of the two phases) of the default run.
DATASETS = {
    "yacht": (5, 50, 500),
    "energy": (5, 50, 200),
    "concrete": (5, 30, 120),
    "kin8nm": (1, 10, 30),
    "power": (1, 10, 30),
}
