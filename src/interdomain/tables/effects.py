"""The effects of columns in a fitted additive model: functions, and shares of the variance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
from gpflow.base import TensorType
from scipy.linalg import block_diag

from .._arguments import Array, integer, number
from ..inducing_variables import SumInducingVariables
from ..kernels import FiniteRank
from ..models import OrthogonalSVGP, StructuredSGPR
from .effect_terms import (
    Weights,
    column_functions,
    effect_terms,
    rows_of_table,
    rows_with_all_columns,
)
from .features import AdditiveFeatures
from .fitting import AdditiveFit
from .frames import effect_name
from .kernel import Additive
from .report import Effects

_MOST_ROWS = 5_000


def effects(
    model: gpflow.models.GPModel | AdditiveFit,
    X: TensorType,
    *,
    output: int = 0,
    scale: float = 1.0,
    num_draws: int = 200,
    seed: int = 0,
) -> Effects:
    """The effect of each column of a table in a fitted model, and its share of the variance.

    The model's f is a sum of effects of columns (:class:`interdomain.tables.Additive`), each with a
    posterior. X determines the distribution **of each column alone**; the measure is the product of
    these distributions. Every effect is centred under this measure: its means over single columns
    become parts of effects of fewer columns. So a main effect, plus the constant, is the mean of f
    over all other columns, and the effects are orthogonal. Their shares of the variance of f are
    Sobol indices (Sobol 2001), in closed form as in Durrande et al. 2013 and Lu et al. 2022
    (*Additive Gaussian processes revisited*). Posterior draws give error bars of the shares.

    Two caveats. Columns may be dependent in the data, but they are independent under this measure:
    shares describe f for columns that vary independently. Error bars are for fixed hyperparameters
    and a fixed measure: they ignore that X is only a sample. An effect whose variance has become
    zero in training has no error bar.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 3])
    >>> Y = np.sin(6 * X[:, :1]) + X[:, 1:2] * X[:, 2:]
    >>> kernel = idm.tables.Additive.from_data(X, effects=["main", (1, 2)], names=list("abc"))
    >>> features = idm.tables.AdditiveFeatures.for_kernel(kernel, 60)
    >>> prior = idm.kernels.FiniteRank(kernel, features)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, features, noise_variance=0.001)
    >>> report = idm.tables.effects(model, X)
    >>> [report.names[k] for k in report.order]
    ['a', 'c', 'b', 'b x c']
    >>> mean, variance = report.at(X)
    >>> bool(np.allclose(report.constant[0] + mean.sum(1), model.predict_f(X)[0][:, 0]))
    True

    :param model: A :class:`~interdomain.models.StructuredSGPR`, ``gpflow.models.SVGP`` or
        :class:`~interdomain.models.AdditiveSVGP` with an ``Additive`` kernel, whole or of finite
        rank, alone or as a summand, and :class:`~interdomain.tables.AdditiveFeatures`; or the
        result of :func:`fit_additive`. If the kernel is a summand, all results are for that
        summand. The features may not explain all prior variance of an effect (they do if the kernel
        is of finite rank). The rest is added to the effect's variance at a row, not to the shares.
    :param X: Rows ``[N, D]`` with all columns of the model, of which at most 5,000 (drawn at
        random) are used; or a data frame, if the kernel was made for one.
    :param output: The column of Y whose effects are computed.
    :param scale: A factor for f. If Y was divided by its standard deviation for training, pass this
        deviation to get results in the original units. Shares do not depend on it.
    :param num_draws: The number of draws from the posterior, for the shares.
    :param seed: The seed of these draws.
    :raises ValueError: If the model is of another class, or has no such kernel, inducing variable
        or output; if X has other columns or is not finite, or a number is not positive.
    """
    output, seed = integer("output", output, at_least=0), integer("seed", seed, at_least=0)
    num_draws = integer("num_draws", num_draws, at_least=1)
    fitted = model.model if isinstance(model, AdditiveFit) else model
    weights = _weights(fitted, output, number("scale", scale, above=0))
    table, rows = weights.table, rows_with_all_columns(weights.table, X)
    measure = f"the values of each column in {len(rows):,} rows"
    if len(rows) > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]]
        measure = f"the values of each column in {len(rows):,} of {len(X):,} rows"
    functions = column_functions(weights, rows_of_table(table, rows))
    terms = effect_terms(weights, functions)
    constant = terms.pop(())
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal([weights.root.shape[1], num_draws])
    variances = [term.variances(term.mean[:, None] + term.root @ noise) for term in terms.values()]
    draws = np.stack(variances, axis=1)
    total = np.sum(draws, axis=1, keepdims=True)
    shares = draws / np.where(total > 0, total, 1.0)
    totals = shares @ [[float(k in effect) for k in range(table.num_columns)] for effect in terms]
    mean_variances = [float(term.variances(term.mean[:, None])[0]) for term in terms.values()]
    return Effects(
        effects=tuple(terms),
        names=tuple(effect_name(effect, table.names) for effect in terms),
        column_names=table.names,
        columns=table.columns,
        measure=measure,
        constant=(float(constant.mean[0]), float(np.linalg.norm(constant.root[0]))),
        shares=np.mean(shares, axis=0),
        share_deviations=np.std(shares, axis=0),
        total_shares=np.mean(totals, axis=0),
        total_share_deviations=np.std(totals, axis=0),
        variance_draws=draws,
        variances_of_mean=np.array(mean_variances),
        _terms=tuple(terms.values()),
        _functions=tuple(functions),
        _table=table,
    )


def _weights(model: Any, output: int, scale: float) -> Weights:
    """The weights of f, times ``scale``.

    :raises ValueError: If the model is of another class, has not exactly one sum of effects with
        features, or no such output.
    """
    if isinstance(model, StructuredSGPR):
        model = model.to_svgp()
    # Orthogonal inducing variables add a part to f that belongs to no single effect.
    if not isinstance(model, gpflow.models.SVGP) or isinstance(model, OrthogonalSVGP):
        raise ValueError(
            "model must have a Gaussian q of features of effects alone, found "
            f"{type(model).__name__}; pass an interdomain.models.StructuredSGPR or AdditiveSVGP, "
            "or a gpflow.models.SVGP, with inducing_variables.AdditiveFeatures."
        )
    if not 0 <= output < model.num_latent_gps:
        raise ValueError(
            f"output must be from 0 to {model.num_latent_gps - 1}, found {output}; pass the number "
            "of a column of Y."
        )
    sums = list(_sums_of_effects(model.inducing_variable, model.kernel))
    if len(sums) != 1:
        raise ValueError(
            "model must have one Additive kernel with AdditiveFeatures, found "
            f"{len(sums) or 'none'} in {type(model.kernel).__name__} with "
            f"{type(model.inducing_variable).__name__}; pass a model of one output, or with "
            "num_latent_gps, of tables.Additive.from_data(X), alone or as a summand, with "
            "AdditiveFeatures.for_kernel(kernel, num_inducing)."
        )
    ((first, features, table, prior),) = sums
    left_over = np.maximum(prior - features.explained_variances(table).numpy(), 0)
    mean, root = (each[first : first + features.num_inducing] for each in _q(model, output))
    variances = np.asarray(features.prior_variances(table), float)
    factors = scale * (np.sqrt(variances) if model.whiten else variances)
    return Weights(table, features, scale**2 * left_over, factors * mean, factors[:, None] * root)


def _sums_of_effects(
    inducing_variable: Any, kernel: Any, first: int = 0
) -> Iterator[tuple[int, AdditiveFeatures, Additive, Array]]:
    """The number of the first feature, the features and their kernel; and the prior variance of
    the constant and of each effect, for each sum of effects in the model. (For a kernel of finite
    rank, it is the variance that the features of the kernel explain.)"""
    finite = kernel.inducing_variable if isinstance(kernel, FiniteRank) else None
    while isinstance(kernel, FiniteRank):
        kernel = kernel.kernel
    if isinstance(inducing_variable, AdditiveFeatures) and isinstance(kernel, Additive):
        prior = kernel.effect_variances if finite is None else finite.explained_variances(kernel)
        yield first, inducing_variable, kernel, prior.numpy()
    elif isinstance(inducing_variable, SumInducingVariables):
        for block, part in zip(inducing_variable.inducing_variables, kernel.kernels, strict=True):
            if block is not None:
                yield from _sums_of_effects(block, part, first)
                first += int(block.num_inducing)


def _q(model: gpflow.models.SVGP, output: int) -> tuple[Array, Array]:
    """The mean of q, ``[M]``, and a root of its covariance, ``[M, M]``, with independent blocks for
    independent q."""
    means: Any = model.q_mu
    roots: Any = model.q_sqrt
    if isinstance(means, gpflow.Parameter):
        means, roots = [means], [roots]
    values = [np.asarray(root, float) for root in roots]
    joint = block_diag(*[np.diag(v[:, output]) if v.ndim == 2 else v[output] for v in values])
    return np.concatenate([np.asarray(mean, float)[:, output] for mean in means]), joint
