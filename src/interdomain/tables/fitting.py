"""``fit_additive``: an additive model of a table, with interactions that the data choose."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow_probability as tfp
from gpflow.utilities import positive

from .._arguments import integer, items, numeric, pair
from ..fitting import fit
from ..kernels import FiniteRank
from ..models import StructuredSGPR
from ..training import FitResult
from .features import AdditiveFeatures
from .frames import effect_name
from .kernel import Additive, Effect
from .orders import atom_size, largest_orders
from .pairs import RankedPair, choose_pairs, features_of, with_pairs
from .reading import is_frame

_CHOSEN = "chosen"

_SUBSET_STEPS = 100

_TURNS, _TURN_STEPS = 3, 50
"""The largest number of turns of ranking pairs and training; and the steps of each training."""

_SETTLED = 0.95
"""The ratio of the noise variance after and before a turn above which pairs are not ranked again:
further pairs would gain too little."""

_FREQUENCIES = 8
"""The least number of frequencies of each main effect, if half of the features suffice."""

_NOISE = 0.1
"""The initial noise variance, in variances of Y."""


@dataclass(frozen=True)
class AdditiveFit:
    """The result of :func:`fit_additive`.

    :ivar model: the trained StructuredSGPR of all rows.
    :ivar kernel: its :class:`~interdomain.tables.Additive` kernel.
    :ivar pairs: the chosen interactions by name, such as ``age x cement``, in the order of choice;
        each with its gain of log marginal likelihood in nats, given the pairs before it.
    :ivar result: the final fit of all parameters, on the statistics of all rows.
    :ivar subset_seconds: the seconds before the pass over all rows.
    :ivar pass_seconds: the seconds for the pass.
    :ivar seconds: the seconds for everything.
    """

    model: StructuredSGPR
    kernel: Additive
    pairs: dict[str, float]
    result: FitResult
    subset_seconds: float
    pass_seconds: float
    seconds: float

    def __str__(self) -> str:
        chosen = "\n".join(f"{gain:10.1f}  {name}" for name, gain in self.pairs.items())
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
    names: Sequence[str] | None = None,
    categorical: Sequence[int | str] = (),
    subset_size: int = 20_000,
    steps: int = 300,
    seed: int = 0,
    progress: bool = True,
) -> AdditiveFit:
    """Build and train an additive model of a table's columns, with one pass over all rows.

    1. Make a kernel with a main effect for each column and any other required effects. Train it by
       L-BFGS on a random subset of the rows.
    2. Rank all pairs of columns by the rise of the subset's log marginal likelihood with their
       interaction, at its best prior variance. Nothing is trained for this. The best pairs are
       added one by one, each given the pairs before it, as long as the number of features allows.
    3. Train all parameters on the subset with these interactions. This may reduce the noise
       variance. As long as it does, rank the remaining pairs again and repeat this step.
    4. Choose the features of largest prior variance, make one pass over all rows, and train all
       parameters by L-BFGS on the sums of the pass. This is exact for all rows and costs O(M^3) a
       step.

    Nothing has to be standardised: parameters are in units of Y, and of the columns.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 3])
    >>> Y = np.sin(5 * X[:, :1]) + 4 * (X[:, 1:2] - 0.5) * (X[:, 2:] - 0.5)
    >>> fitted = idm.tables.fit_additive(
    ...     (X, Y), 60, names=["age", "load", "heat"], steps=30, progress=False
    ... )
    >>> list(fitted.pairs)
    ['load x heat']
    >>> fitted.kernel.effect_names
    ('age', 'load', 'heat', 'load x heat')
    >>> mean, variance = fitted.model.predict_f(X[:5])

    The fit keeps no checkpoints. To resume a run, or for rows that are not arrays, call
    :func:`interdomain.fit` with a :class:`~interdomain.models.StructuredSGPR` of this kernel.

    :param data: (X ``[N, D]``, Y ``[N, P]``) as arrays or memory-mapped arrays. All columns of Y
        share the parameters and the effects. X may be a data frame of numbers and categories. Then
        pass ``fitted.kernel.encode(X)`` to the model, and the frame to :func:`effects`.
    :param num_inducing: the largest number M of features, including the constant; 500 by default.
    :param effects: the effects, as for :class:`~interdomain.tables.Additive`. Include ``"chosen"``
        to let the data choose pairs: ``["main", "chosen", ("age", "load", "heat")]``. Without it,
        the model has exactly these effects, and no pairs are ranked.
    :param names: the names of the D columns; by default those of a data frame.
    :param categorical: as in :meth:`Additive.from_data <interdomain.tables.Additive.from_data>`.
    :param subset_size: the number of rows of the subset, drawn without replacement.
    :param steps: the largest number of L-BFGS iterations on the statistics of all rows.
    :param seed: the seed for drawing the subset. The same seed gives the same result.
    :param progress: show progress bars.
    :raises ValueError: for data that are not a pair; for columns that are constant, have missing
        values, or more than half as many levels as rows (the message names them); if Y does not
        vary or is not finite; or if the requested effects need more features.
    """
    started = time.perf_counter()
    X, Y = pair("data", data)
    num_inducing = integer("num_inducing", num_inducing, at_least=2)
    subset_size = integer("subset_size", subset_size, at_least=2)
    steps, seed = integer("steps", steps, at_least=0), integer("seed", seed, at_least=0)
    rule = "tuples of columns, 'main', 'pairs' or 'chosen'"
    listed = [effects] if isinstance(effects, str) else items("effects", effects, rule)
    asked_for = [effect for effect in listed if not (isinstance(effect, str) and effect == _CHOSEN)]
    if not asked_for:
        raise ValueError(
            f"effects must be {rule}, found {effects!r}; pass ('main', 'chosen'): pairs are ranked "
            "by what other effects leave."
        )
    choosing = len(asked_for) < len(listed)
    Y = np.asarray(Y) if hasattr(Y, "iloc") else Y
    numeric("data: Y", Y, "a matrix [N, P]")
    kernel = Additive.from_data(
        X, asked_for, names=names, categorical=categorical, separate_lengthscales=True
    )
    X = kernel.encode(X) if is_frame(X) else X
    if np.ndim(Y) != 2 or len(X) != len(Y):
        raise ValueError(
            f"data: Y must be a matrix [N, P] with the {len(X)} rows of X, found shape "
            f"{np.shape(Y)}; pass np.reshape(Y, [-1, 1]) of a vector."
        )
    if not np.all(np.isfinite(np.asarray(Y, float))):
        raise ValueError("data: Y must be finite, found rows that are not; remove them.")
    data, size = (X, Y), num_inducing
    if choosing:  # pairs are added later
        atoms = sum(atom_size(kernel, effect) for effect in kernel.effects)
        size = max(min(1 + _FREQUENCIES * atoms, size // 2), min(1 + atoms, size))
    subset, unit, highest = begin(data, kernel, size, subset_size, seed)
    fit(subset, steps=_SUBSET_STEPS, progress=progress)
    chosen: list[RankedPair] = []
    room = num_inducing - int(subset.inducing_variable.num_inducing)
    for _ in range(_TURNS if choosing else 0):
        pairs, _ = choose_pairs(subset, kernel, room=room, unit=unit, progress=progress)
        noise = float(subset.likelihood.variance.numpy())
        if not pairs:
            break
        chosen += pairs
        kernel = with_pairs(kernel, pairs)
        room -= sum(features_of(kernel, pair.effect) for pair in pairs)
        subset.kernel, subset.inducing_variable = _prior(kernel, num_inducing, highest)
        fit(subset, steps=_TURN_STEPS, progress=progress)
        if float(subset.likelihood.variance.numpy()) > _SETTLED * noise:
            break
    prior, likelihood = _prior(kernel, num_inducing, highest), subset.likelihood
    model = StructuredSGPR(data, *prior, likelihood=likelihood, progress=progress)
    subset_done = time.perf_counter()
    _ = model.statistics
    pass_done = time.perf_counter()
    result = fit(model, steps=steps, progress=progress)
    gains = {effect_name(pair.effect, kernel.names): pair.gain for pair in chosen}
    seconds = subset_done - started, pass_done - subset_done, time.perf_counter() - started
    return AdditiveFit(model, kernel, gains, result, *seconds)


def begin(
    data: Any, kernel: Additive, size: int, subset_size: int, seed: int
) -> tuple[StructuredSGPR, float, list[int]]:
    """A model of a subset of the rows, with initial scales from this subset; the variance of Y; and
    the largest number of periods that the values of each column can resolve.

    :raises ValueError: If Y does not vary.
    """
    X, Y = (np.asarray(array) for array in data)
    rows = np.sort(np.random.default_rng(seed).permutation(len(X))[:subset_size])
    X, Y = X[rows], Y[rows]
    unit = float(np.mean(np.var(Y, axis=0)))
    if not unit > 0:
        raise ValueError(
            f"data: Y must vary, found {Y.flat[0] if Y.size else 'no rows'} in all rows; pass the "
            "target of the regression."
        )
    count, square = len(kernel.effects), float(np.mean(np.square(Y)))
    kernel.variances = _in_units(np.full(count, unit / count), unit)
    kernel.constant_variance = _in_units(square, square)
    highest = [max(len(np.unique(column)) // 2, 1) for column in X.T]
    subset = StructuredSGPR((X, Y), *_prior(kernel, size, highest), progress=False)
    subset.likelihood.variance = _in_units(_NOISE * unit, unit, lower=1e-6)
    return subset, unit, highest


def _prior(
    kernel: Additive, num_inducing: int, highest: Sequence[int]
) -> tuple[FiniteRank, AdditiveFeatures]:
    """The prior of finite rank, and its features of largest prior variance. They include the first
    waves of main effects: an effect that was trained with few waves may seem too weak.

    :param highest: The largest number of periods of each column.
    """
    main: list[Effect] = [effect for effect in kernel.effects if len(effect) == 1]
    room = num_inducing // (1 if len(main) == len(kernel.effects) else 2)
    at_least = dict.fromkeys(main, min(room // max(2 * len(main), 1), _FREQUENCIES))
    features = AdditiveFeatures(kernel, largest_orders(kernel, num_inducing, at_least, highest))
    return FiniteRank(kernel, features), features


def _in_units(value: Any, unit: float, lower: float | None = None) -> gpflow.Parameter:
    """A positive parameter whose unconstrained value is independent of the unit."""
    scale = tfp.bijectors.Scale(np.asarray(unit, gpflow.default_float()))
    transform = tfp.bijectors.Chain([scale, positive(lower)])
    return gpflow.Parameter(value, transform=transform)
