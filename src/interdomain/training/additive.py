"""A sum of effects of a table's columns, with interactions chosen by the data: ``fit_additive``."""

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
from .effects import begin, features_for, first_size, same_columns, with_pairs
from .loop import fit
from .pairs import RankedPair, choose_pairs, features_of
from .pursuit import fit_quietly
from .results import FitResult

_CHOSEN = "chosen"

_SHARE = 16
"""Features that are set apart for a pair."""

_SUBSET_STEPS = 100

_TURN_STEPS = 50

_SETTLED = 0.95
"""If pairs have left more than this of the noise variance, others would gain no more than they did:
they are not ranked again."""


@dataclass(frozen=True)
class AdditiveFit:
    """
    What :func:`fit_additive` did.

    :ivar model: the trained model, of all rows.
    :ivar kernel: its :class:`~interdomain.kernels.Additive` kernel.
    :ivar pairs: the pairs that were chosen, best first, with what each explains given those before.
    :ivar ranking: all pairs that there was room for, each by itself, best first.
    :ivar result: the fit of all parameters on the statistics of all rows.
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
    A sum of effects of a table's columns, made and trained with one pass over all rows.

    1. A kernel of main effects, and others that are asked for, with scales from the columns.
    2. Its parameters are trained by L-BFGS on a random subset of the rows.
    3. All pairs of columns are ranked by what their interaction would add to the log marginal
       likelihood of the subset, at the prior variance that is best for it, without training
       anything. The best are kept, each given those before, while there are features for them.
    4. All parameters are trained on the subset with these. What was noise may be an effect now: the
       pairs that are left are ranked again, while there is less noise every time.
    5. Those features are taken that carry most of the prior variance, main effects having their
       first waves in any case.
    6. One pass over all rows, and L-BFGS for all parameters on its sums: exact for all rows, at
       O(M^3) a step.

    Nothing has to be standardised: parameters are in units of Y, and of the columns.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 3])
    >>> Y = np.sin(5 * X[:, :1]) + 4 * (X[:, 1:2] - 0.5) * (X[:, 2:] - 0.5)
    >>> fitted = idm.training.fit_additive(
    ...     (X, Y), 60, names=["age", "load", "heat"], steps=30, progress=False
    ... )
    >>> [pair.name for pair in fitted.pairs]
    ['load x heat']
    >>> fitted.kernel.effect_names
    ('age', 'load', 'heat', 'load x heat')
    >>> mean, variance = fitted.model.predict_f(X[:5])

    The model is of one process and keeps no checkpoints: for a strategy, rows that are to be
    skipped, or a run that resumes, build :class:`~interdomain.models.StructuredSGPR` with
    ``fitted.kernel`` and call :func:`fit`.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays or memory-mapped arrays; with ``kernel``
        anything that :class:`~interdomain.models.StructuredSGPR` takes and rows can be drawn from.
        Columns of Y share the parameters, and the effects.
    :param num_inducing: the number M of features, at most, the constant included.
    :param effects: as of :class:`~interdomain.kernels.Additive`, with ``"chosen"`` among them for
        the pairs that the data choose: ``["main", "chosen", ("age", "load", "heat")]``. Without
        it, exactly these are there, and nothing is ranked.
    :param kernel: a kernel whose columns, kernel class, ``active_dims`` and kind of lengthscales
        are used, in place of the arguments from ``names`` to ``separate_lengthscales``; its effects
        and values are not. ``Additive.from_data(some_rows)`` makes one for data that are no arrays.
    :param names: of the columns, ``[D]``.
    :param categorical: as of :meth:`Additive.from_data <interdomain.kernels.Additive.from_data>`.
    :param quantiles: as there.
    :param margin: as there.
    :param kernel_class: as there.
    :param separate_lengthscales: as there; True by default.
    :param subset_size: rows to draw, without replacement; all, if there are fewer.
    :param steps: L-BFGS iterations on the statistics, at most.
    :param turns: of ranking pairs and training with them, at most.
    :param least_gain: nats that a pair has to gain on the subset to be chosen.
    :param seed: of the subset. The same gives the same result.
    :param options: for SciPy's L-BFGS-B, every time; see :func:`fit`.
    :param progress: show progress bars.
    :raises ValueError: for wrong arguments, data that are no arrays without ``kernel``, columns
        that are constant, have missing values or nearly as many levels as rows (with their names),
        Y that does not vary, or fewer features than the effects that are asked for need.
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
    result = fit(model, method="l-bfgs", steps=steps, **arguments)
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
            f"data: Y must be finite, found {wrong} of {len(Y)} rows that are not; remove them."
        )
    return X, Y
