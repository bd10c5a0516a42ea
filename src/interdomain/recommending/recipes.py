"""The models that :func:`recommend` knows, each as a user would write it.

Each function is a step of a script: what is shown as code is its body, so it uses nothing but its
arguments and what is imported here. It returns the names that it has made, and they are among the
arguments of the next step; the last one makes ``model``. The docstring says what the model is, and
when it is worth a try. X and Y are those of
:class:`~interdomain.recommending.prepared.PreparedData`.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import gpflow
import numpy as np
from scipy.cluster.vq import kmeans2

import interdomain as idm

Names: TypeAlias = dict[str, Any]


def exact(X: Any, Y: Any) -> Names:
    """An exact GP: with so few rows nothing has to be approximated."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    return locals()


def points(X: Any, likelihood: Any, num_latent: int, num_inducing: int) -> Names:
    """GPflow's SVGP with inducing points, for any table."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    centres, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    model = gpflow.models.SVGP(
        kernel, likelihood, centres, num_latent_gps=num_latent, num_data=len(X)
    )
    return locals()


def orthogonal_points(X: Any, likelihood: Any, num_latent: int, num_inducing: int) -> Names:
    """Points and points orthogonal to them: cheaper than one set of as many points."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    centres, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    base, orthogonal = centres[::2], centres[1::2]
    model = idm.models.OrthogonalSVGP(
        kernel,
        likelihood,
        gpflow.inducing_variables.InducingPoints(base),
        gpflow.inducing_variables.InducingPoints(orthogonal),
        num_latent_gps=num_latent,
        num_data=len(X),
    )
    return locals()


def blocks(X: Any, likelihood: Any, num_latent: int, num_inducing: int, num_groups: int) -> Names:
    """A sum of smaller models, split by negations of principal components."""
    transforms = idm.transforms.PrincipalNegation.from_data(X, num_groups)
    base = gpflow.kernels.Matern52(lengthscales=X.shape[1] ** 0.5)
    kernel = idm.kernels.HarmonicKernel(base, transforms)
    each = round(num_inducing / kernel.num_components ** (1 / 3))  # as much work as one model
    inducing_variable = idm.inducing_variables.HarmonicInducingPoints.from_data(kernel, X, each)
    model = idm.models.AdditiveSVGP(
        kernel, likelihood, inducing_variable, num_latent_gps=num_latent, num_data=len(X)
    )
    return locals()


def patches(
    X: Any, likelihood: Any, num_latent: int, image_shape: tuple[int, ...], num_inducing: int
) -> Names:
    """Patches of images: what small parts look like, wherever they are."""
    base = gpflow.kernels.SquaredExponential(variance=10.0, lengthscales=2.0)
    side = min(5, *image_shape[:2])
    kernel = idm.kernels.Convolutional(base, image_shape=image_shape, patch_shape=(side, side))
    some = idm.inducing_variables.InducingPatches.from_data(kernel, X, num_inducing)
    model = gpflow.models.SVGP(kernel, likelihood, some, num_latent_gps=num_latent, num_data=len(X))
    return locals()


def harmonics(X: Any) -> Names:
    """Harmonics chosen by the targets: a function of all columns together."""
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(zonal, X.shape[1], max_degree=2)
    kernel = idm.kernels.FiniteRank(zonal, features)
    return locals()


def waves(X: Any, num_inducing: int) -> Names:
    """Fourier features of a box, computed once: one to three columns."""
    base = gpflow.kernels.Matern32(lengthscales=np.full(X.shape[1], 0.3))
    box = idm.kernels.Periodized.from_data(base, X, margin=2)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(box, num_inducing)
    kernel = idm.kernels.FiniteRank(box, features)
    return locals()


def all_pairs(X: Any, num_inducing: int, categorical: list[int]) -> Names:
    """A sum of effects of single columns and of pairs."""
    wanted = ["main", "pairs"] if X.shape[1] <= 8 else "main"
    table = idm.tables.Additive.from_data(
        X, wanted, categorical=categorical, separate_lengthscales=True
    )
    features = idm.tables.AdditiveFeatures.for_kernel(table, num_inducing)
    kernel = idm.kernels.FiniteRank(table, features)
    return locals()


def effects(X: Any, Y: Any, num_inducing: int, categorical: list[int]) -> Names:
    """A sum of effects of single columns and of pairs."""
    model = idm.tables.fit_additive((X, Y), num_inducing, categorical=categorical).model
    return locals()


def in_one_pass(X: Any, Y: Any, kernel: Any, features: Any) -> Names:
    """The exact model of such features, under Gaussian noise."""
    model = idm.models.StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    return locals()


def in_a_few_passes(
    X: Any, Y: Any, kernel: Any, features: Any, likelihood: Any, num_latent: int
) -> Names:
    """The model of such features for any likelihood."""
    model = idm.models.DualSVGP((X, Y), kernel, likelihood, features, num_latent_gps=num_latent)
    return locals()


def and_effects(X: Any, Y: Any, model: Any, num_inducing: int, categorical: list[int]) -> Names:
    """Effects of single columns and of pairs, and harmonics of all columns."""
    idm.fit(model, num_inducing=num_inducing // 2)
    effects = idm.tables.fit_additive((X, Y), num_inducing // 2, categorical=categorical).model
    features = [effects.inducing_variable, model.inducing_variable]
    model = idm.models.StructuredSGPR(
        (X, Y),
        effects.kernel + model.kernel,
        idm.inducing_variables.SumInducingVariables(features),
        likelihood=model.likelihood,
    )
    return locals()


def by_minibatches(
    X: Any,
    model: Any,
    zonal: Any,
    likelihood: Any,
    num_latent: int,
    num_inducing: int,
    q_diag: bool,
) -> Names:
    """Harmonics of most prior variance, trained by minibatches: for very many rows."""
    idm.fit(model, steps=1)  # input scales, on a subset
    chosen = idm.inducing_variables.SphericalHarmonics.for_data(zonal, X, num_inducing)
    model = gpflow.models.SVGP(
        idm.kernels.FiniteRank(zonal, chosen),
        likelihood,
        chosen,
        q_diag=q_diag,
        num_latent_gps=num_latent,
        num_data=len(X),
    )
    return locals()
