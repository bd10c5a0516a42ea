"""The report of the effects of columns in a fitted model, as numbers, text and pictures."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from gpflow.base import TensorType

from .._arguments import ROWS_OF_A_BATCH, Array, finite_array, integer, items, short
from .._progress import aligned
from ..plotting.axes import new_axes, new_figure
from .columns import Column
from .effect_terms import ColumnFunctions, EffectTerm, rows_of_table, rows_with_all_columns
from .frames import column_number
from .kernel import Additive, Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAND = 2.0
"""The half width of bands and error bars, in standard deviations."""

_POINTS = 200, 60
"""The number of values of a column on a line, and on either axis of a map."""

_LONGEST_LINE = 42


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of a table's columns in a fitted model, as :func:`effects` returns them.

    ``print`` shows a table with the largest effects first. Arrays ``[E]`` are in the order of
    :attr:`effects`. All results are for f without the mean function.

    :ivar effects: The numbers of the columns of each effect.
    :ivar names: The name of each effect, such as ``age`` or ``age x cement``.
    :ivar column_names: The names of the D columns.
    :ivar columns: A description of each column.
    :ivar measure: The distribution of the columns that variances refer to, in words.
    :ivar constant: The posterior mean and standard deviation of the mean of f under the measure.
    :ivar shares: The Sobol index of each effect, ``[E]``: its share of the variance of f under the
        measure, averaged over the posterior.
    :ivar share_deviations: The standard deviations of ``shares`` under the posterior, ``[E]``.
    :ivar total_shares: The total Sobol index of each column, ``[D]``: the sum of the shares of all
        effects that involve it.
    :ivar total_share_deviations: The standard deviations of ``total_shares``, ``[D]``.
    :ivar variance_draws: The variances of effects under the measure, for draws of f from the
        posterior, ``[num_draws, E]``.
    :ivar variances_of_mean: The variances of effects of the posterior mean, ``[E]``.
    """

    effects: tuple[Effect, ...]
    names: tuple[str, ...]
    column_names: tuple[str, ...]
    columns: tuple[Column, ...]
    measure: str
    constant: tuple[float, float]
    shares: Array = field(repr=False)
    share_deviations: Array = field(repr=False)
    total_shares: Array = field(repr=False)
    total_share_deviations: Array = field(repr=False)
    variance_draws: Array = field(repr=False)
    variances_of_mean: Array = field(repr=False)
    _terms: tuple[EffectTerm, ...] = field(repr=False)
    _functions: tuple[ColumnFunctions, ...] = field(repr=False)
    _table: Additive = field(repr=False)

    @property
    def order(self) -> tuple[int, ...]:
        """The numbers of the effects, sorted by decreasing share."""
        return tuple(np.argsort(-self.shares, kind="stable").tolist())

    def _columns_of(self, effect: Any) -> Effect:
        """The columns of an effect, in the order in which the argument lists them.

        :raises ValueError: If there is no such effect.
        """
        if isinstance(effect, str) and effect in self.names:
            return self.effects[self.names.index(effect)]
        single = isinstance(effect, str) or np.ndim(effect) == 0
        listed = [effect] if single else items("effect", effect, "names or numbers of columns")
        numbers = tuple(column_number("effect", column, self.column_names) for column in listed)
        if tuple(sorted(numbers)) not in self.effects:
            raise ValueError(
                f"effect must be one of the report's, found {short(effect)}; pass one of "
                f"{', '.join(self.names)}."
            )
        return numbers

    def at(self, X: TensorType) -> tuple[Array, Array]:
        """The posterior mean and variance of each effect at rows X ``[N, D]`` of the model,
        ``[N, E]`` both. The means and the mean of :attr:`constant` add up to the posterior mean of
        f.

        :raises ValueError: If X is not finite, or has other columns.
        """
        X, batches = rows_with_all_columns(self._table, X), []
        for start in range(0, len(X), ROWS_OF_A_BATCH):
            batch = rows_of_table(self._table, X[start : start + ROWS_OF_A_BATCH])
            centred = [f.centred(x) for f, x in zip(self._functions, batch.T, strict=True)]
            batches.append([term.at([centred[k] for k in term.effect]) for term in self._terms])
        means, variances = np.moveaxis(np.concatenate(batches, axis=-1), 1, 0)
        return means.T, variances.T

    def of(self, effect: Any, values: TensorType) -> tuple[Array, Array]:
        """The posterior mean and variance of one effect at values of its columns, ``[N]`` both.

        :param effect: The name of the effect, the number or name of its only column, or a list of
            the numbers or names of its columns.
        :param values: Numbers, or names of levels, ``[N, k]`` for an effect of k columns, in the
            order of ``effect`` (increasing, if it is a name); also ``[N]`` for one column.
        :raises ValueError: If there is no such effect, or values do not fit it.
        """
        columns = self._columns_of(effect)
        number = self.effects.index(tuple(sorted(columns)))
        form = f"a matrix [N, {len(columns)}], a column for each of {self.names[number]!r}"
        values = self._encoded(columns, values)
        rows = finite_array("values", values, (1, 2), form)
        rows = rows[:, None] if rows.ndim == 1 else rows
        if rows.shape[1] != len(columns):
            raise ValueError(f"values must be {form}, found shape {rows.shape}.")
        column_values = dict(zip(columns, rows.T, strict=True))
        term = self._terms[number]
        return term.at([self._functions[k].centred(column_values[k]) for k in term.effect])

    def _encoded(self, columns: Effect, values: Any) -> Any:
        """Values of these columns with numbers of levels in place of names."""
        given = np.asarray(values)
        if given.dtype.kind in "biuf" or given.ndim not in (1, 2):
            return values
        rows = given.astype(object).reshape(len(given), -1)
        for k, column in zip(columns, rows.T, strict=False):
            names = self.columns[k].level_names or ()
            numbers = dict(zip(names, self.columns[k].grid(len(names)), strict=False))
            for place, value in enumerate(column.tolist()):
                if isinstance(value, str) and value not in numbers:
                    raise ValueError(
                        f"values must be numbers or levels of {self.column_names[k]!r}, found "
                        f"{value!r}; its levels are {short(list(numbers))}."
                    )
                column[place] = numbers.get(value, value)
        return rows

    def __str__(self) -> str:
        totals = self.total_shares, self.total_share_deviations
        lines = [
            f"{len(self.effects)} effects over {self.measure}",
            f"mean {self.constant[0]:.4g} +- {self.constant[1]:.2g}",
        ]
        for head, names, means, deviations in (
            (("effect", "share", "+-"), self.names, self.shares, self.share_deviations),
            (("column", "in all", "+-"), self.column_names, *totals),
        ):
            order = np.argsort(-means, kind="stable")
            rows = [(names[k], f"{means[k]:.1%}", f"{deviations[k]:.1%}") for k in order]
            lines += ["", *aligned([head, *rows])]
        return "\n".join(lines)

    def plot(self, num: int = 6, *, label: str = "effect") -> Figure:
        """Draw the largest effects, each in a panel (see :meth:`plot_effect`) with its name and its
        share of the variance. All panels of single columns have one scale.

        :param num: The largest number of effects of one or two columns to draw.
        :param label: A label for f with its units.
        """
        num = integer("num", num, at_least=1)
        chosen = [effect for k in self.order if len(effect := self.effects[k]) <= 2][:num]
        columns = min(3, len(chosen))
        rows = -(-len(chosen) // columns)
        figure = new_figure((4.2 * columns, 3.2 * rows))
        axes = []
        for place, effect in enumerate(chosen, start=1):
            ax = self.plot_effect(effect, figure.add_subplot(rows, columns, place), label=label)
            axes += [ax] * (len(effect) == 1)
        limits = [ax.get_ylim() for ax in axes]
        for ax in axes:
            ax.set_ylim(np.min(limits), np.max(limits))
        return figure

    def plot_effect(self, effect: Any, ax: Axes | None = None, *, label: str = "effect") -> Axes:
        """Draw one effect, over the range of its columns in the data, in their units.

        A numeric column gives a line with a band of two standard deviations to either side. A
        column of categories gives a bar for each level with such error bars. Two columns give a map
        of the mean, in which zero is white.

        :param effect: An effect of one or two columns, by its name or by its columns.
        :param ax: The axes to draw in; a new figure by default.
        :param label: A label for f with its units.
        :raises ValueError: If there is no such effect, or it has more than two columns.
        """
        places = tuple(sorted(self._columns_of(effect)))
        number = self.effects.index(places)
        if len(places) > 2:
            raise ValueError(
                f"effect must have one or two columns to be drawn, found {self.names[number]!r}; "
                "pass fixed values of some columns, with values of the others, to `of`."
            )
        ax = new_axes() if ax is None else ax
        columns = [self.columns[k] for k in places]
        values = [column.grid(_POINTS[len(places) - 1]) for column in columns]
        grid = np.stack(np.meshgrid(*values), axis=-1)
        mean, variance = self.of(places, grid.reshape([-1, len(places)]))
        if len(places) == 2:
            _draw_map(ax, columns, values, mean.reshape(grid.shape[:2]), label)
        else:
            ax.axhline(0, color="0.6", lw=0.8, zorder=0)
            spread = _BAND * np.sqrt(variance)
            if columns[0].num_levels is None:
                ax.fill_between(values[0], mean - spread, mean + spread, alpha=0.3, lw=0)
                ax.plot(values[0], mean)
                ax.margins(x=0)
            else:
                style = {"capsize": 3, "ecolor": "0.2"}
                ax.bar(np.arange(len(mean)), mean, yerr=spread, alpha=0.7, error_kw=style)
                _level_ticks(ax.xaxis, columns[0])
        labels = [self.column_names[k] for k in places] + [label]
        ax.set(xlabel=labels[0], ylabel=labels[1])
        share, deviation = self.shares[number], self.share_deviations[number]
        title = f"{self.names[number]}: {share:.1%} ± {deviation:.1%}"
        ax.set_title(textwrap.fill(title, _LONGEST_LINE), fontsize="medium")
        return ax


def _draw_map(
    ax: Axes, columns: Sequence[Column], values: Sequence[Array], mean: Array, label: str
) -> None:
    """Draw the mean ``[up, across]`` as a map, with zero in white."""
    across, up = (
        v if column.num_levels is None else np.arange(float(len(v)))
        for column, v in zip(columns, values, strict=True)
    )
    limit = np.max(np.abs(mean)) or 1.0
    colours: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -limit, "vmax": limit}
    mesh = ax.pcolormesh(across, up, mean, shading="nearest", rasterized=True, **colours)
    ax.figure.colorbar(mesh, ax=ax, label=label)
    for axis, column in zip((ax.xaxis, ax.yaxis), columns, strict=True):
        if column.num_levels is not None:
            _level_ticks(axis, column)


def _level_ticks(axis: Any, column: Column) -> None:
    """Label an axis with the levels, or with every second or third level if there are many."""
    names = column.level_names or [f"{level:g}" for level in column.grid(0)]
    step = -(-len(names) // 12)
    axis.set_ticks(np.arange(len(names))[::step], [str(name) for name in names[::step]])
