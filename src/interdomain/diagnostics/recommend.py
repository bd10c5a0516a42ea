"""Recommends a model for a data set: compares small versions of suitable models in a race."""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import choice, instance, integer, number
from .._progress import progress_bar
from .._targets import densities_of
from ..tables import Race, RaceEntry, race
from ..tables.race import CLOCKS, Clock
from .candidates import Candidate, best_negations, candidates_for
from .prepared import PreparedData, prepare

_ROWS_PER_SECOND, _ROWS = 50, (500, 20_000)
"""The number of training rows per second of the budget; and the smallest and largest number."""

_STEPS_PER_SECOND = 5
"""Training steps with minibatches per second of the budget."""

_SIZE, _SIZES = 20, (30, 500)
"""The size of small candidates is this number times the square root of the seconds; and the
smallest and largest size."""

_HELD_OUT, _MOST_HELD_OUT = 5, 5_000
"""One row in this many is held out; and the largest number of held-out rows."""

_STEPS = 3_000
"""The number of training steps with minibatches of candidates at full size."""

_FEW_ROWS = 200

_AS_GOOD = 0.01
"""In nats a row: a candidate that is less than this behind the best is called as good."""

_TIE = 0.002
"""In nats a row: among candidates that are this close, the one that is named first is taken. A
candidate that is slightly better at small size is ahead by more at full size
(``benchmarks/pareto``: power)."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """
    The result of :func:`recommend`; ``str`` makes a report of it.

    :ivar name: the recommended candidate.
    :ivar code: a script that makes and trains it at full size, from X, Y and ``likelihood`` as they
        were passed.
    :ivar reasons: why it is recommended, and how the others compare, in sentences.
    :ivar findings: what the data are like, in sentences.
    :ivar not_tried: the candidates that there was no time for.
    :ivar race: how well the small versions predicted; None if there was no time for any.
    :ivar candidates: all candidates at full size, by name.
    :ivar seconds: the seconds that everything took, by the chosen clock.
    """

    name: str
    code: str = field(repr=False)
    reasons: tuple[str, ...]
    findings: tuple[str, ...]
    not_tried: tuple[str, ...]
    race: Race | None = field(repr=False)
    candidates: Mapping[str, Candidate] = field(repr=False)
    seconds: float

    def __str__(self) -> str:
        lines = [f"Take {self.name}: {self.candidates[self.name].why}", ""]
        lines += [f"- {sentence}" for sentence in (*self.reasons, *self.findings)]
        if self.not_tried:
            lines.append(f"- Not tried, for want of time: {', '.join(self.not_tried)}.")
        if self.race is not None:
            lines += ["", str(self.race)]
        return "\n".join([*lines, "", self.code])


def recommend(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    seconds: float = 60,
    *,
    globe: Sequence[int] | None = None,
    image_shape: Sequence[int] | None = None,
    clock: Clock = "cpu",
    seed: int = 0,
    progress: bool = True,
) -> Recommendation:
    """
    Recommend a model for a data set, by training small versions of suitable models and comparing
    their predictions on held-out rows.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> Y = np.sin(9 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=500)
    >>> found = idm.diagnostics.recommend(X, Y, seconds=8, progress=False)
    >>> found.name in found.candidates, found.code.startswith("import gpflow")
    (True, True)

    The candidates for a table are

    * an exact GP, for Gaussian noise and up to 2,000 rows;
    * GPflow's SVGP with inducing points, orthogonal points, and a sum of blocks along the best
      negations by :func:`rank_transforms`;
    * waves of a box, for up to three columns;
    * harmonics that the targets choose, and harmonics with a full or a diagonal q trained on
      minibatches, for up to 50 columns;
    * effects of single columns and of pairs, for two or more columns; and, for Gaussian noise and
      up to 50 columns, these together with harmonics.

    If ``globe`` or ``image_shape`` is given, the candidates are harmonics of the globe or a model
    on patches, the exact GP, inducing points and orthogonal points. Candidates whose training ends
    by itself are tried first, then those that are trained on minibatches, until the time is over:
    the one that is being trained then is finished. The others are listed in
    :attr:`Recommendation.not_tried`.

    Columns are standardised, and so is Y under Gaussian noise; a column with two values counts as
    categories where effects of columns are summed.

    :param X: ``[N, D]``, finite numbers: make a column of zeros and ones for each level of a column
        of text, and leave out rows with missing values and columns that do not vary.
    :param Y: ``[N, P]`` or ``[N]``; numbers.
    :param likelihood: the likelihood of Y, such as ``gpflow.likelihoods.Bernoulli()`` for two
        classes. None for Gaussian noise of one variance, which is trained: so is a
        ``gpflow.likelihoods.Gaussian`` that says no more. One with a variance that is fixed, has a
        prior or is a function of X, and a subclass, are used like every other likelihood, for Y as
        it is.
    :param seconds: the time for everything; more time is spent on more rows, larger models and more
        candidates.
    :param globe: the columns of latitude and longitude in degrees, such as ``(0, 1)``.
    :param image_shape: (height, width) or (height, width, channels), if rows are images.
    :param clock: "cpu" counts the seconds of all processors together, so that other programs
        hardly change the answer; or "wall".
    :param seed: the seed for drawing rows and for training. The same seed gives the same answer,
        unless the time limit cuts something short.
    :param progress: show a progress bar.
    :raises ValueError: for wrong arguments, X or Y that are not finite or have a column that does
        not vary, Y that is unknown to the likelihood, a likelihood with a function of X that is not
        standardised, or fewer than 20 rows.
    """
    choice("clock", clock, tuple(CLOCKS))
    now = CLOCKS[clock]
    started = now()
    likelihood = checked_likelihood(likelihood)
    seconds = number("seconds", seconds, above=0)
    seed = integer("seed", seed, at_least=0)
    data = _prepared(X, Y, likelihood, globe=globe, image_shape=image_shape)
    groups = best_negations(data)
    full = _full_size(data, likelihood, 500, groups)

    order = np.random.default_rng(seed).permutation(len(data.X))
    apart = max(min(len(order) // _HELD_OUT, _MOST_HELD_OUT), 1)
    rows = order[apart : apart + int(np.clip(_ROWS_PER_SECOND * seconds, *_ROWS))]
    varying = np.ptp(data.X[rows], axis=0) > 0  # in few rows a rare level may be missing
    few = data if data.globe or data.image_shape else replace(data, X=data.X[:, varying])
    train, held_out = (few.X[rows], few.Y[rows]), (few.X[order[:apart]], few.Y[order[:apart]])
    small = candidates_for(
        few,
        likelihood,
        num_inducing=int(np.clip(_SIZE * math.sqrt(seconds), *_SIZES)),
        steps=max(int(_STEPS_PER_SECOND * seconds), 1),
        num_rows=len(rows),
        num_groups=groups,
    )
    # First those that end by themselves, since the others can use whatever time is left.
    in_turn = sorted(full, key=lambda name: "batch_size" in full[name].training_arguments)
    entries: dict[str, RaceEntry] = {}
    bar = progress_bar("recommend", "model", len(in_turn), shown=progress, iterable=in_turn)
    for name in bar:
        bar.set_postfix_str(name)
        left = seconds - (now() - started)
        if name in small and left > 0:
            # What concerns small versions only is not the user's: their warnings, bars within.
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                entries |= race(
                    {name: small[name].entrant},
                    train,
                    [left],
                    validation_data=held_out,
                    clock=clock,
                    seed=seed,
                    progress=False,
                ).entries
    found = Race(entries, (seconds,), clock, len(rows), apart) if entries else None
    winner = _winner(found, list(full))
    return Recommendation(
        name=winner,
        code=full[winner].code,
        reasons=tuple(_reasons(winner, found, seconds, standardised=likelihood is None)),
        findings=tuple(_described(data, likelihood)),
        not_tried=tuple(name for name in in_turn if name not in entries),
        race=found,
        candidates=full,
        seconds=now() - started,
    )


def _winner(found: Race | None, names: Sequence[str]) -> str:
    """The best; of those that tie, the one that is named first. Without a race, the first."""
    arrived = {} if found is None else _densities(found)
    if not arrived:
        return names[0]
    best = max(arrived.values())
    return next(name for name in names if arrived.get(name, -math.inf) >= best - _TIE)


def _densities(found: Race) -> dict[str, float]:
    return {
        name: entry.trace[-1].log_density
        for name, entry in found.entries.items()
        if entry.trace and math.isfinite(entry.trace[-1].log_density)
    }


def _described(data: PreparedData, likelihood: Likelihood | None) -> list[str]:
    rows, columns = data.X.shape
    kind = "targets under Gaussian noise" if likelihood is None else type(likelihood).__name__
    found = [f"{rows:,} rows, {columns} columns; {kind}."]
    values = np.unique(data.Y)
    if likelihood is None and len(values) == 2:
        found.append(
            "Y has two values: if these are classes, pass 0 and 1 and "
            "likelihood=gpflow.likelihoods.Bernoulli()."
        )
    if rows < _FEW_ROWS:
        found.append("So few rows tell models hardly apart: take the ranking for a hint.")
    return found


def _reasons(winner: str, found: Race | None, seconds: float, *, standardised: bool) -> list[str]:
    arrived = {} if found is None else _densities(found)
    if found is None or not arrived:
        return [
            f"No model was ready within {seconds:g} s: this is the one that suits such data most "
            "often. Pass more seconds."
        ]
    own = arrived[winner]
    said = [
        f"{winner}: mean log density {own:.3f} of {found.num_held_out:,} rows held out, "
        f"trained with {found.num_rows:,}."
    ]
    others = sorted((name for name in arrived if name != winner), key=lambda name: -arrived[name])
    for name in others:
        ahead = own - arrived[name]
        verdict = f"{ahead:.3f} behind" if ahead > _AS_GOOD else "as good"
        said.append(f"{name}: {verdict}.")
    model = found.entries[winner].model
    variance = getattr(getattr(model, "likelihood", None), "variance", None)
    if standardised and variance is not None:
        said.append(f"Noise: {100 * float(np.mean(variance.numpy())):.2g}% of the variance of Y.")
    if "effects" in arrived and winner != "effects" and own - arrived["effects"] < 3 * _AS_GOOD:
        said.append(
            "A sum of effects is hardly worse, and says what each column does "
            "(diagnostics.effects)."
        )
    return said


def candidates(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    *,
    globe: Sequence[int] | None = None,
    image_shape: Sequence[int] | None = None,
    num_inducing: int = 500,
) -> dict[str, Candidate]:
    """
    The models of this library, and GPflow's own, that are suitable for a table, ready to be
    trained.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 2])
    >>> Y = np.sin(5 * X[:, 0] * X[:, 1])
    >>> found = idm.diagnostics.candidates(X, Y, num_inducing=50)
    >>> list(found)[:4]
    ['exact', 'waves', 'harmonics', 'effects']
    >>> print(found["waves"].code.splitlines()[-1])
    idm.training.fit_sgpr(model)

    ``race({name: one.entrant for name, one in found.items()}, (X, Y), 60)`` compares them at this
    size; its X and Y must be standardised already. :func:`recommend` compares small versions, and
    prepares the rows itself.

    :param X: ``[N, D]``; see :func:`recommend`.
    :param Y: ``[N, P]`` or ``[N]``.
    :param likelihood: None for Gaussian noise; see :func:`recommend`.
    :param globe: as for :func:`recommend`.
    :param image_shape: as for :func:`recommend`.
    :param num_inducing: the number of points, harmonics, or features of effects, but at most a
        quarter of the rows. There are twice as many waves, or effects together with harmonics, and
        at most 100 patches.
    :raises ValueError: as :func:`recommend`.
    """
    likelihood = checked_likelihood(likelihood)
    num_inducing = integer("num_inducing", num_inducing, at_least=2)
    data = _prepared(X, Y, likelihood, globe=globe, image_shape=image_shape)
    return _full_size(data, likelihood, num_inducing, best_negations(data))


def _full_size(
    data: PreparedData, likelihood: Likelihood | None, num_inducing: int, num_groups: int
) -> dict[str, Candidate]:
    return candidates_for(
        data,
        likelihood,
        num_inducing=num_inducing,
        steps=_STEPS,
        num_rows=len(data.X),
        num_groups=num_groups,
    )


def _prepared(X: Any, Y: Any, likelihood: Likelihood | None, **form: Any) -> PreparedData:
    """
    :raises ValueError: also for a likelihood of which something is a function of other X than the
        models have.
    """
    data = prepare(X, Y, likelihood, **form)
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (np.shape(X) == data.X.shape and np.allclose(np.asarray(X), data.X)):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            "standardised X; pass a likelihood for (X - X.mean(axis=0)) / X.std(axis=0), and this "
            "as X."
        )
    return data


def checked_likelihood(likelihood: Any) -> Likelihood | None:
    """The likelihood; None if it says no more than that noise is Gaussian, of one variance that
    training finds."""
    if likelihood is None:
        return None
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood", "pass one, or None")
    if type(likelihood) is Gaussian and densities_of(likelihood) is Gaussian:
        noise = likelihood.scale if likelihood.variance is None else likelihood.variance
        if isinstance(noise, Parameter) and noise.trainable and noise.prior is None:
            return None if int(tf.size(noise)) == 1 else likelihood
    return likelihood  # type: ignore[no-any-return]
