"""A fitted sum of effects, taken apart: what each column does, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gpflow
import numpy as np
from gpflow.base import TensorType

from .._arguments import (
    ROWS_OF_A_BATCH,
    Array,
    filled_matrix,
    finite_array,
    integer,
    items,
    number,
    short,
)
from .._progress import aligned
from .columns import Column
from .effect_terms import (
    ColumnFunctions,
    Effect,
    EffectTerm,
    column_functions,
    effect_terms,
    effect_weights,
    rows_of_table,
)
from .frames import column_number, effect_name
from .kernel import Additive

_MOST_ROWS = 5_000


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of a table's columns in a fitted model, as :func:`effects` finds them.

    When printed, it is a table with the largest effects first. Arrays ``[E]`` are in the order of
    :attr:`effects`. All results are for f without the mean function.

    :ivar effects: The numbers of the columns of each effect.
    :ivar names: The name of each effect, such as ``age`` or ``age x cement``.
    :ivar column_names: The names of the D columns.
    :ivar columns: A description of each column.
    :ivar measure: The distribution of the columns that variances refer to, in words.
    :ivar constant: The constant effect, which is the mean of f under the measure: its posterior
        mean and standard deviation.
    :ivar variance_draws: The variance of each effect under the measure, for draws of f from the
        posterior, ``[num_draws, E]``.
    :ivar variances_of_mean: The variance of each effect under the measure, for the posterior mean
        of f, ``[E]``.
    """

    effects: tuple[Effect, ...]
    names: tuple[str, ...]
    column_names: tuple[str, ...]
    columns: tuple[Column, ...]
    measure: str
    constant: tuple[float, float]
    variance_draws: Array = field(repr=False)
    variances_of_mean: Array = field(repr=False)
    _terms: tuple[EffectTerm, ...] = field(repr=False)
    _functions: tuple[ColumnFunctions, ...] = field(repr=False)
    _table: Additive = field(repr=False)

    @property
    def share_draws(self) -> Array:
        """The Sobol indices of draws of f, ``[num_draws, E]``."""
        variances = self.variance_draws
        total = np.sum(variances, axis=-1, keepdims=True)
        return np.asarray(
            np.divide(variances, total, out=np.zeros_like(variances), where=total > 0)
        )

    @property
    def shares(self) -> Array:
        """The Sobol index of each effect, ``[E]``: its share of the variance of f under the
        measure, averaged over the posterior."""
        return np.asarray(np.mean(self.share_draws, axis=0))

    @property
    def share_deviations(self) -> Array:
        """The standard deviations of :attr:`shares` under the posterior, ``[E]``."""
        return np.asarray(np.std(self.share_draws, axis=0))

    @property
    def total_shares(self) -> Array:
        """The total Sobol index of each column, ``[D]``: the sum of the shares of all effects that
        involve it."""
        return np.asarray(np.mean(self.share_draws @ self._membership, axis=0))

    @property
    def total_share_deviations(self) -> Array:
        """The standard deviations of :attr:`total_shares` under the posterior, ``[D]``."""
        return np.asarray(np.std(self.share_draws @ self._membership, axis=0))

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the effects, sorted by decreasing share."""
        return tuple(np.argsort(-self.shares, kind="stable").tolist())

    @property
    def _membership(self) -> Array:
        """Which column is in which effect, ``[E, D]``."""
        columns = range(len(self.columns))
        return np.array([[float(k in effect) for k in columns] for effect in self.effects])

    def number_of(self, effect: Any) -> int:
        """The position of an effect in :attr:`effects`.

        :param effect: The name of the effect, the number or name of its only column, or a list of
            the numbers or names of its columns.
        :raises ValueError: If there is no such effect.
        """
        if isinstance(effect, str) and effect in self.names:
            return self.names.index(effect)
        single = isinstance(effect, str) or np.ndim(effect) == 0
        return self.effects.index(tuple(sorted(self._numbers([effect] if single else effect))))

    def at(self, X: TensorType) -> tuple[Array, Array]:
        """Posterior mean and variance of each effect at the rows of X, ``[N, E]`` both.

        The means and the mean of :attr:`constant` add up to the posterior mean of f.

        :param X: ``[N, D]``, as for the model.
        :raises ValueError: If X is not finite, or has other columns.
        """
        rows = rows_of_table(self._table, filled_matrix("X", X, "a matrix [N, D]"))
        means, variances = [], []
        for start in range(0, len(rows), ROWS_OF_A_BATCH):
            batch = rows[start : start + ROWS_OF_A_BATCH]
            centred = [of.centred(x) for of, x in zip(self._functions, batch.T, strict=True)]
            of_terms = [term.at([centred[k] for k in term.effect]) for term in self._terms]
            means.append(np.stack([mean for mean, _ in of_terms], axis=1))
            variances.append(np.stack([variance for _, variance in of_terms], axis=1))
        return np.concatenate(means), np.concatenate(variances)

    def of(self, effect: Any, values: TensorType) -> tuple[Array, Array]:
        """Posterior mean and variance of one effect at values of its columns, ``[N]`` both.

        :param effect: As for :meth:`number_of`.
        :param values: ``[N, k]`` for an effect of k columns, in the order in which ``effect`` lists
            them (in increasing order, if it is a name); also ``[N]`` for one column.
        :raises ValueError: If there is no such effect, or values do not fit it.
        """
        number = self.number_of(effect)
        term = self._terms[number]
        form = f"a matrix [N, {len(term.effect)}], a column for each of {self.names[number]!r}"
        rows = finite_array("values", values, (1, 2), form)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.shape[1] != len(term.effect):
            raise ValueError(f"values must be {form}, found shape {rows.shape}.")
        is_list = not isinstance(effect, str) and np.ndim(effect) > 0
        of_column = dict(
            zip(self._numbers(effect) if is_list else term.effect, rows.T, strict=True)
        )
        return term.at([self._functions[k].centred(of_column[k]) for k in term.effect])

    def _numbers(self, effect: Any) -> Effect:
        """
        :raises ValueError: If there is no effect of these columns.
        """
        listed = items("effect", effect, "names or numbers of columns")
        numbers = tuple(column_number("effect", column, self.column_names) for column in listed)
        if tuple(sorted(numbers)) not in self.effects:
            raise ValueError(
                f"effect must be one of the report's, found {short(effect)}; pass one of "
                f"{', '.join(self.names)}."
            )
        return numbers

    def __str__(self) -> str:
        lines = [
            f"{len(self.effects)} effects over {self.measure}",
            f"mean {self.constant[0]:.4g} +- {self.constant[1]:.2g}",
        ]
        for head, names, means, deviations in (
            (("effect", "share", "+-"), self.names, self.shares, self.share_deviations),
            (
                ("column", "in all", "+-"),
                self.column_names,
                self.total_shares,
                self.total_share_deviations,
            ),
        ):
            order = np.argsort(-means, kind="stable")
            rows = [(names[k], f"{means[k]:.1%}", f"{deviations[k]:.1%}") for k in order]
            lines += ["", *aligned([head, *rows])]
        return "\n".join(lines)


def effects(
    model: gpflow.models.GPModel,
    X: TensorType,
    *,
    output: int = 0,
    scale: float = 1.0,
    num_draws: int = 200,
    seed: int = 0,
) -> Effects:
    """What each column of a table does in a fitted model, and how much it matters.

    The model's f is a sum of effects of columns (:class:`interdomain.tables.Additive`), each with
    a posterior. X determines the distribution **of each column alone**; the measure is the product
    of these distributions. Every effect is centred exactly under this measure: what is not centred
    in it is moved into effects of fewer columns. So a main effect, plus the constant, is the mean
    of f over all other columns, and the effects are orthogonal. Their variances add up to that of
    f, and their shares of it are Sobol indices (Sobol 2001, *Global sensitivity indices for
    nonlinear mathematical models and their Monte Carlo estimates*), in closed form as in Durrande
    et al. 2013 (*ANOVA kernels and RKHS of zero mean functions for model-based sensitivity
    analysis*) and Lu et al. 2022 (*Additive Gaussian processes revisited*). Draws from the
    posterior give their error bars.

    Two caveats. Columns may be dependent in the data, but under this measure they are independent:
    shares say what f does where the columns take their values independently. And error bars are
    those of f for fixed hyperparameters and a fixed measure: they do not include that X is only a
    sample, and an effect whose variance has become zero in training has no error bar.

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
        rank, alone or as a summand, and :class:`~interdomain.tables.AdditiveFeatures`.
        If it is a summand, all results are for that summand. The prior variance of an effect that
        its features do not represent (none if the kernel is of finite rank) is added to its
        variance at a point, but not included in the shares.
    :param X: Rows ``[N, D]`` with all columns of the model, of which at most 5,000 (drawn at
        random) are used.
    :param output: The column of Y to look at.
    :param scale: A factor for f. If Y was divided by its standard deviation for training, pass that
        to get results in the original units. Shares do not depend on it.
    :param num_draws: The number of draws from the posterior, for the shares.
    :param seed: The seed of these draws.
    :raises ValueError: If the model is of another kind or has no such kernel, inducing variable or
        output, X does not fit, or numbers are not positive.
    """
    num_draws = integer("num_draws", num_draws, at_least=2)
    seed = integer("seed", seed, at_least=0)
    weights = effect_weights(model, output, number("scale", scale, above=0))
    table, rows = weights.table, filled_matrix("X", X, "a matrix [N, D]")
    measure = f"the values of each column in {len(rows):,} rows"
    if len(rows) > _MOST_ROWS:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:_MOST_ROWS]]
        measure = f"the values of each column in {len(rows):,} of {len(X):,} rows"
    functions = column_functions(weights, rows_of_table(table, rows))
    terms = effect_terms(weights, functions)
    constant = terms.pop(())
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal([weights.root.shape[1], num_draws])
    of_draws = [term.variances(term.mean[:, None] + term.root @ noise) for term in terms.values()]
    of_mean = [float(term.variances(term.mean[:, None])[0]) for term in terms.values()]
    return Effects(
        effects=tuple(terms),
        names=tuple(effect_name(effect, table.names) for effect in terms),
        column_names=table.names,
        columns=table.columns,
        measure=measure,
        constant=(float(constant.mean[0]), float(np.linalg.norm(constant.root[0]))),
        variance_draws=np.stack(of_draws, axis=1),
        variances_of_mean=np.array(of_mean),
        _terms=tuple(terms.values()),
        _functions=tuple(functions),
        _table=table,
    )
