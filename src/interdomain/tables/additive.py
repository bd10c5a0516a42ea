"""``fit_additive``: an additive model of a table, with interactions that the data choose."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpflow.kernels import Matern52, Stationary

from .._arguments import boolean, instance, integer, items, number
from ..kernels import Additive, FiniteRank
from ..models import StructuredSGPR
from ..streaming.rows import MISSING
from ..training.loop import fit, fit_quietly
from ..training.results import FitResult
from .effects import begin, features_for, first_size, same_columns, with_pairs
from .pairs import RankedPair, choose_pairs, features_of

_CHOSEN = "chosen"

_SHARE = 16
"""How many features are reserved for a pair."""

_SUBSET_STEPS = 100

_TURN_STEPS = 50

_SETTLED = 0.95
"""If the chosen pairs have left more than this share of the noise variance, further pairs would
gain no more than these did: they are not ranked again."""


@dataclass(frozen=True)
class AdditiveFit:
    """
    What :func:`fit_additive` did.

    :ivar model: the trained model, of all rows.
    :ivar kernel: its :class:`~interdomain.kernels.Additive` kernel.
    :ivar pairs: the interactions that were chosen, best first; the gain of each is its gain given
        those chosen before it.
    :ivar ranking: all pairs that there was room for, best first, as ranked in the first turn: the
        gain of each is its gain alone.
    :ivar result: the final fit of all parameters, on the statistics of all rows.
    :ivar subset_seconds: the seconds for everything before the pass over all rows.
    :ivar pass_seconds: the seconds for the pass.
    :ivar seconds: the seconds for everything.
    """

    model: StructuredSGPR
    kernel: Additive
    pairs: tuple[RankedPair, ...]
    ranking: tuple[RankedPair, ...]
    result: FitResult
    subset_seconds: float
    pass_seconds: float
    seconds: float

    def __str__(self) -> str:
        chosen = "\n".join(f"{pair.gain:10.1f}  {pair.name}" for pair in self.pairs)
        size = self.model.inducing_variable.num_inducing
        head = (
            f"{len(self.kernel.effects)} effects, {size} features, bound {self.result.elbo:.1f}, "
            f"{self.seconds:.1f} s ({self.subset_seconds:.1f} on the subset, "
            f"{self.pass_seconds:.1f} in the pass)"
        )
        return f"{head}\nnats gained by pairs that were chosen:\n{chosen or '      none'}"


def fit_additive(
    data: Any,
    num_inducing: int = 500,
    *,
    effects: Sequence[Any] | str = ("main", _CHOSEN),
    kernel: Additive | None = None,
    names: Sequence[str] | None = None,
    categorical: Sequence[int | str] = (),
    quantiles: bool | None = None,
    margin: float = 0.5,
    kernel_class: type[Stationary] = Matern52,
    separate_lengthscales: bool = True,
    subset_size: int = 20_000,
    steps: int = 300,
    turns: int = 3,
    least_gain: float = 1.0,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> AdditiveFit:
    """
    Build and train an additive model of a table's columns, with one pass over all rows.

    1. Make a kernel with a main effect for each column, and any other effects that are asked for.
       Its initial scales come from the columns.
    2. Train its parameters by L-BFGS on a random subset of the rows.
    3. Rank all pairs of columns by how much their interaction would raise the log marginal
       likelihood of the subset. Nothing is trained for this: each pair is given the prior variance
       that suits it best. The best pairs are added one by one, each judged given those before it,
       as long as features are left for them.
    4. Train all parameters on the subset with these interactions. What looked like noise before may
       now be explained, so the remaining pairs are ranked again, as long as each turn reduces the
       noise variance.
    5. Choose the features that carry most of the prior variance. Main effects always get their
       first waves.
    6. Make one pass over all rows, and train all parameters by L-BFGS on its sums. This is exact
       for all rows and costs O(M^3) a step.

    Nothing has to be standardised: parameters are in units of Y, and of the columns.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 3])
    >>> Y = np.sin(5 * X[:, :1]) + 4 * (X[:, 1:2] - 0.5) * (X[:, 2:] - 0.5)
    >>> fitted = idm.tables.fit_additive(
    ...     (X, Y), 60, names=["age", "load", "heat"], steps=30, progress=False
    ... )
    >>> [pair.name for pair in fitted.pairs]
    ['load x heat']
    >>> fitted.kernel.effect_names
    ('age', 'load', 'heat', 'load x heat')
    >>> mean, variance = fitted.model.predict_f(X[:5])

    This function runs in one process and keeps no checkpoints. To use a strategy, to skip invalid
    rows or to resume a run, build :class:`~interdomain.models.StructuredSGPR` with
    ``fitted.kernel`` and call ``training.fit``.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays or memory-mapped arrays. If ``kernel`` is
        given, anything from which :class:`~interdomain.models.StructuredSGPR` can draw rows.
        All columns of Y share the parameters and the effects.
    :param num_inducing: the largest number M of features, including the constant.
    :param effects: the effects, as :class:`~interdomain.kernels.Additive` takes them. Include
        ``"chosen"`` to let the data choose pairs: ``["main", "chosen", ("age", "load", "heat")]``.
        Without it, the model has exactly these effects, and no pairs are ranked.
    :param kernel: a kernel that replaces the arguments from ``names`` to
        ``separate_lengthscales``. Its columns, kernel class, ``active_dims`` and kind of
        lengthscales are used; its effects and parameter values are not.
        ``Additive.from_data(some_rows)`` makes one for data that are not arrays.
    :param names: the names of the D columns; by default those of a data frame.
    :param categorical: as in :meth:`Additive.from_data <interdomain.kernels.Additive.from_data>`.
    :param quantiles: as in ``Additive.from_data``.
    :param margin: as in ``Additive.from_data``.
    :param kernel_class: as in ``Additive.from_data``.
    :param separate_lengthscales: as in ``Additive.from_data``, but True by default.
    :param subset_size: the number of rows to draw, without replacement; all rows, if there are
        fewer.
    :param steps: the largest number of L-BFGS iterations on the statistics of all rows.
    :param turns: how often pairs are ranked and trained with, at most.
    :param least_gain: how many nats a pair has to gain on the subset to be chosen.
    :param seed: the seed for drawing the subset. The same seed gives the same result.
    :param options: options of SciPy's L-BFGS-B, for every fit; see ``training.fit``.
    :param progress: show progress bars.
    :raises ValueError: for wrong arguments; for data that are not arrays, if ``kernel`` is not
        given; for columns that are constant, have missing values or nearly as many levels as rows
        (the message names them); if Y does not vary; or if the requested effects need more
        features.
    """
    started = time.perf_counter()
    num_inducing = integer("num_inducing", num_inducing, at_least=2)
    integer("subset_size", subset_size, at_least=1)
    integer("steps", steps, at_least=1)
    turns = integer("turns", turns, at_least=1)
    least_gain = number("least_gain", least_gain, at_least=0)
    boolean("progress", progress)
    given, choosing = _given(effects)
    if kernel is None:
        X, _ = _arrays(data)
        kernel = Additive.from_data(
            X,
            given,
            names=names,
            categorical=categorical,
            quantiles=quantiles,
            margin=margin,
            kernel_class=kernel_class,
            separate_lengthscales=separate_lengthscales,
        )
    else:
        remedy = "pass interdomain.kernels.Additive.from_data(some_rows), or None"
        instance("kernel", kernel, Additive, "an Additive kernel", remedy)
        kernel = same_columns(kernel, given)
    arguments: dict[str, Any] = {"options": options, "progress": progress}
    size = first_size(kernel, num_inducing) if choosing else num_inducing
    subset, beginning = begin(data, kernel, size, subset_size, seed)
    fit_quietly(subset, steps=_SUBSET_STEPS, **arguments)
    chosen: list[RankedPair] = []
    ranking: list[RankedPair] = []
    room = num_inducing - int(subset.inducing_variable.num_inducing)
    for turn in range(turns if choosing else 0):
        found, by_themselves = choose_pairs(
            subset,
            kernel,
            room=room,
            share=_SHARE,
            unit=beginning.unit,
            least_gain=least_gain,
            progress=progress,
        )
        ranking = by_themselves if turn == 0 else ranking
        noise = float(subset.likelihood.variance.numpy())
        if not found:
            break
        chosen += found
        kernel = with_pairs(kernel, found)
        features = features_for(kernel, num_inducing, beginning.highest)
        room -= sum(features_of(kernel, pair.effect, _SHARE) for pair in found)
        subset.inducing_variable, subset.kernel = features, FiniteRank(kernel, features)
        fit_quietly(subset, steps=_TURN_STEPS, **arguments)
        if float(subset.likelihood.variance.numpy()) > _SETTLED * noise:
            break
    features = features_for(kernel, num_inducing, beginning.highest)
    model = StructuredSGPR(
        data,
        FiniteRank(kernel, features),
        features,
        likelihood=subset.likelihood,
        progress=progress,
    )
    subset_done = time.perf_counter()
    _ = model.statistics
    pass_done = time.perf_counter()
    result = fit(model, steps=steps, **arguments)
    return AdditiveFit(
        model=model,
        kernel=kernel,
        pairs=tuple(chosen),
        ranking=tuple(ranking),
        result=result,
        subset_seconds=subset_done - started,
        pass_seconds=pass_done - subset_done,
        seconds=time.perf_counter() - started,
    )


def _given(effects: Any) -> tuple[list[Any], bool]:
    """The effects that are asked for, and whether pairs are to be chosen."""
    rule = "tuples of columns, 'main', 'pairs' or 'chosen'"
    listed = [effects] if isinstance(effects, str) else items("effects", effects, rule)
    given = [effect for effect in listed if not (isinstance(effect, str) and effect == _CHOSEN)]
    if not given:
        raise ValueError(
            f"effects must be {rule}, found {effects!r}; pass ('main', 'chosen'): pairs are ranked "
            "by what others leave."
        )
    return given, len(given) < len(listed)


def _arrays(data: Any) -> tuple[Any, Any]:
    """:raises ValueError: If they are not arrays, or Y is not finite."""
    pair = isinstance(data, (tuple, list)) and len(data) == 2
    if not (pair and all(hasattr(array, "shape") for array in data)):
        raise ValueError(
            f"data must be a pair of arrays (X, Y), found {type(data).__name__}; pass "
            "kernel=interdomain.kernels.Additive.from_data(some_rows) for other data."
        )
    X, Y = data
    wrong = np.count_nonzero(~np.isfinite(np.asarray(Y, float)))
    if wrong:
        raise ValueError(
            f"data: Y must be finite, found {wrong} of {len(Y)} rows that are not; remove them; "
            f"{MISSING}."
        )
    return X, Y
