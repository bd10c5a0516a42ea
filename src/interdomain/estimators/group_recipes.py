"""Recipes for tables with columns of many categories: each level of such a column gets a number.

They are like the recipes of :mod:`.recipes`. The last columns of X hold the numbers of levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
from gpflow.base import RegressionData as Data
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Matern52
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel

import interdomain as idm

from .recipes import lengthscales, weights_of


def exact_and_groups(data: Data, num_levels: Sequence[int]) -> GPModel:
    """An exact GP of all other columns, and a number for each level of groups; O(N^3) a step."""
    X = data[0]
    numbers, groups, _ = columns_and_groups(X, num_levels)
    kernel = Matern52(lengthscales=lengthscales(X[:, numbers]), active_dims=numbers)
    return gpflow.models.GPR(data, gpflow.kernels.Sum([kernel, *groups]), noise_variance=0.1)


def neighbours_and_groups(
    data: Data, num_levels: Sequence[int], inputs: str, likelihood: Likelihood | None = None
) -> GPModel:
    """The nearest m rows, and a number for each level of the last columns; O(N m^3 + L^3) for L
    levels."""
    numbers, groups, features = columns_and_groups(data[0], num_levels)
    priors = [idm.kernels.FiniteRank(*pair) for pair in zip(groups, features, strict=True)]
    return idm.models.VecchiaSGPR(
        data[:2],
        *summed(priors, features),
        likelihood=likelihood,
        local_columns=numbers,
        local_inputs=inputs,
        noise_weights=weights_of(data),
    )


def neighbours_and_many_groups(
    data: Data, num_levels: Sequence[int], inputs: str, likelihood: Likelihood | None = None
) -> GPModel:
    """The nearest m rows, and a number for each of thousands of levels. Parameters are trained on
    the rows of 2,000 levels; O(N m^3 + L^3) once for L levels, with matrices [L, L]."""
    X = data[0]
    first, largest = X.shape[1] - len(num_levels), int(np.argmax(num_levels))
    levels = np.random.default_rng(0).permutation(num_levels[largest])[:2_000]
    chosen = np.isin(X[:, first + largest], levels)
    rows, fewer = X[chosen], []
    for k in range(first, X.shape[1]):  # levels get new numbers
        present, rows[:, k] = np.unique(rows[:, k], return_inverse=True)
        fewer.append(max(len(present), 2))
    parts = [part[chosen] for part in data[1:]]
    trained = neighbours_and_groups((rows, *parts), fewer, inputs, likelihood)
    idm.fit(trained, options={"parts": "both"})
    model = neighbours_and_groups(data, num_levels, inputs, likelihood)
    model.local_kernel = trained.local_kernel
    gpflow.utilities.multiple_assign(model, gpflow.utilities.parameter_dict(trained))
    model.search()
    return model


def beside_groups(
    data: Data,
    recipe: Callable[..., GPModel],
    settings: Mapping[str, Any],
    training: Mapping[str, Any] | None,
    num_levels: Sequence[int],
    likelihood: Likelihood | None = None,
) -> GPModel:
    """The sum of a model of all other columns, which is trained first, and a number for each level
    of the last columns; O(N M^2 + L M^2) for L levels."""
    numbers, groups, features = columns_and_groups(data[0], num_levels)
    model = recipe((data[0][:, numbers], *data[1:]), **settings)
    if training is not None:
        idm.fit(model, **training)
    parts = getattr(model.kernel, "kernels", [model.kernel])
    first = getattr(model.inducing_variable, "inducing_variables", [model.inducing_variable])
    for part in parts:
        part.kernel.active_dims = numbers
    pairs = [(part.kernel, feature) for part, feature in zip(parts, first, strict=True)]
    pairs += zip(groups, features, strict=True)
    priors = [idm.kernels.FiniteRank(*pair) for pair in pairs]
    prior, together = summed(priors, [feature for _, feature in pairs])
    if likelihood is None:
        return idm.models.StructuredSGPR(data, prior, together, likelihood=model.likelihood)
    return idm.models.DualSVGP(data, prior, model.likelihood, together)


def columns_and_groups(
    X: TensorType, num_levels: Sequence[int]
) -> tuple[slice, list[Any], list[Any]]:
    """The columns that are not groups, as a slice; the kernels and the features of the groups."""
    size = X.shape[1] - len(num_levels)
    kernels = [
        idm.tables.GroupIntercepts(np.arange(levels), variance=0.5, active_dims=[size + k])
        for k, levels in enumerate(num_levels)
    ]
    return slice(size), kernels, [idm.tables.GroupFeatures(kernel) for kernel in kernels]


def summed(priors: list[Any], features: list[Any]) -> tuple[Kernel, Any]:
    """The sum of the prior kernels, and the features of all summands."""
    if len(priors) == 1:
        return priors[0], features[0]
    together = idm.inducing_variables.SumInducingVariables(features)
    return gpflow.kernels.Sum(priors), together
