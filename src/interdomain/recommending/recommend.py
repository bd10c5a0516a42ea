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
from gpflow.likelihoods import Likelihood

from .._arguments import choice, integer, number
from .._progress import progress_bar
from .candidates import STEPS, Candidate, candidates_for
from .prepared import PreparedData, checked_likelihood, prepare
from .race import CLOCKS, Clock, Race, RaceEntry, race

_ROWS, _SIZE = 3_000, 150
"""The largest numbers of training rows, and of points or features, of small versions."""

_FULL_SIZE = 500

_HELD_OUT, _MOST_HELD_OUT = 5, 5_000
"""One row in this many is held out; and the largest number of held-out rows."""

_FEW_ROWS = 200

_AS_GOOD = 0.01
"""In nats a row: a candidate that is less than this behind the best is called as good."""

_TIE = 0.002
"""In nats a row: among candidates that are this close, the one that is named first is taken. A
candidate that is slightly better at small size is ahead by more at full size
(``benchmarks/pareto``: power)."""


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The result of :func:`recommend`; ``str`` makes a report of it.

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
    image_shape: Sequence[int] | None = None,
    clock: Clock = "cpu",
    seed: int = 0,
    progress: bool = True,
) -> Recommendation:
    """Recommend a model for a data set, by training small versions of suitable models and comparing
    their predictions on held-out rows.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> Y = np.sin(9 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=500)
    >>> found = idm.recommend(X, Y, seconds=8, progress=False)
    >>> found.name in found.candidates, found.code.startswith("import gpflow")
    (True, True)

    The candidates for a table are

    * an exact GP, for Gaussian noise and up to 2,000 rows;
    * GPflow's SVGP with inducing points, orthogonal points, and a sum of blocks along negations of
      the first two principal components;
    * waves of a box, for up to three columns;
    * harmonics that the targets choose, and harmonics with a full or a diagonal q trained on
      minibatches, for up to 50 columns;
    * effects of single columns and of pairs, for two or more columns; and, for Gaussian noise and
      up to 50 columns, these together with harmonics.

    If ``image_shape`` is given, the candidates are a model on patches, the exact GP, inducing
    points and orthogonal points. Small versions have up to 3,000 rows and 150 points or features.
    Candidates whose training ends by itself are tried first; the others, which are trained on
    minibatches, share the time that is left. What there was no time for is listed in
    :attr:`Recommendation.not_tried`.

    Columns are standardised, and so is Y under Gaussian noise; a column with two values counts as
    categories where effects of columns are summed.

    :param X: ``[N, D]``, finite numbers; or a data frame of columns of numbers and of categories
        (text, or what pandas calls a category), which become a column of zeros and ones for each
        level but the first. Leave out rows with missing values and columns that do not vary.
    :param Y: ``[N, P]`` or ``[N]``; numbers.
    :param likelihood: the likelihood of Y, such as ``gpflow.likelihoods.Bernoulli()`` for two
        classes. None for Gaussian noise of one variance, which is trained: so is a
        ``gpflow.likelihoods.Gaussian`` that says no more. One with a variance that is fixed, has a
        prior or is a function of X, and a subclass, are used like every other likelihood, for Y as
        it is.
    :param seconds: the time for everything: with more time more candidates are tried, and those of
        minibatches trained for longer.
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
    data = prepare(X, Y, likelihood, image_shape)
    full = candidates_for(data, likelihood, _FULL_SIZE, STEPS)

    order = np.random.default_rng(seed).permutation(len(data.X))
    apart = max(min(len(order) // _HELD_OUT, _MOST_HELD_OUT), 1)
    rows = order[apart : apart + _ROWS]
    columns = np.ptp(data.X[rows], axis=0) > 0  # in few rows a rare level may be missing
    if data.image_shape is not None:
        columns[:] = True
    train = data.X[rows][:, columns], data.Y[rows]
    held_out = data.X[order[:apart]][:, columns], data.Y[order[:apart]]
    few = replace(data, X=train[0], Y=train[1])
    small = candidates_for(few, likelihood, _SIZE)
    # First those that end by themselves, since the others share whatever time is left.
    in_turn = sorted(full, key=lambda name: "batch_size" in full[name].training_arguments)
    entries: dict[str, RaceEntry] = {}
    bar = progress_bar("recommend", "model", len(in_turn), shown=progress, iterable=in_turn)
    for place, name in enumerate(bar):
        bar.set_postfix_str(name)
        left = seconds - (now() - started)
        if "batch_size" in full[name].training_arguments:
            left /= len(in_turn) - place
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
    outcome = Race(entries, (seconds,), clock, len(rows), apart)
    densities = {
        name: entry.trace[-1].log_density
        for name, entry in entries.items()
        if entry.trace and math.isfinite(entry.trace[-1].log_density)
    }
    # The best; of those that tie, the one that is named first. Without a race, the first.
    best = max(densities.values(), default=-math.inf)
    winner = next(name for name in full if densities.get(name, -math.inf) >= best - _TIE)
    return Recommendation(
        name=winner,
        code=full[winner].code,
        reasons=tuple(_reasons(winner, densities, outcome, standardised=likelihood is None)),
        findings=tuple(_described(data, likelihood)),
        not_tried=tuple(name for name in in_turn if name not in entries),
        race=outcome if entries else None,
        candidates=full,
        seconds=now() - started,
    )


def _described(data: PreparedData, likelihood: Likelihood | None) -> list[str]:
    rows, columns = data.X.shape
    kind = "targets under Gaussian noise" if likelihood is None else type(likelihood).__name__
    sentences = [f"{rows:,} rows, {columns} columns; {kind}."]
    if likelihood is None and len(np.unique(data.Y)) == 2:
        sentences.append(
            "Y has two values: if these are classes, pass 0 and 1 and "
            "likelihood=gpflow.likelihoods.Bernoulli()."
        )
    if rows < _FEW_ROWS:
        sentences.append("So few rows tell models hardly apart: take the ranking for a hint.")
    return sentences


def _reasons(
    winner: str, densities: Mapping[str, float], race: Race, *, standardised: bool
) -> list[str]:
    if not densities:
        return [
            f"No model was ready within {race.times[-1]:g} s: this is the one that suits such data "
            "most often. Pass more seconds."
        ]
    sentences = [
        f"{winner}: mean log density {densities[winner]:.3f} of {race.num_held_out:,} rows held "
        f"out, trained with {race.num_rows:,}."
    ]
    behind = {name: densities[winner] - density for name, density in densities.items()}
    for name in sorted(behind, key=lambda name: behind[name]):
        if name == winner:
            continue
        verdict = f"{behind[name]:.3f} behind" if behind[name] > _AS_GOOD else "as good"
        sentences.append(f"{name}: {verdict}.")
    model = race.entries[winner].model
    variance = getattr(getattr(model, "likelihood", None), "variance", None)
    if standardised and variance is not None:
        share = 100 * float(np.mean(variance.numpy()))
        sentences.append(f"Noise: {share:.2g}% of the variance of Y.")
    if winner != "effects" and behind.get("effects", math.inf) < 3 * _AS_GOOD:
        sentences.append(
            "A sum of effects is hardly worse, and says what each column does "
            "(diagnostics.effects)."
        )
    return sentences
