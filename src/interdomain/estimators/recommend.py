"""``recommend``: a model for a data set, by a race of small versions of suitable models."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from gpflow.likelihoods import Likelihood

from .._arguments import choice, integer, number, short
from .._progress import bars, progress_bar
from ..sphere import unit_vectors
from ..training import StopFit
from .baseline import density_of_the_mean
from .candidates import BOTH, STEPS, candidates_for
from .held_out import held_out_rows, with_fewer_levels
from .prepared import HELD_OUT, PreparedData, checked_likelihood, prepare
from .race import CLOCKS, check_enough, race
from .results import Clock, Race, RaceEntry, Recommendation

_ROWS, _SIZE = 3_000, 150
"""The largest numbers of training rows, and of points or features, of small versions."""

_ROWS_NEARBY = 40_000
"""The largest number of training rows of models with neighbours or groups. Among few rows,
neighbours are far, and groups have few rows each. (A model that was trained on fewer rows than it
predicts from would be overconfident at repeated rows.)"""

_PARTS = {"effects and harmonics": ("effects", "harmonics"), BOTH: ("harmonics", "neighbours")}
"""Candidates that combine two candidates; their training takes longer than that of both."""

_FULL_SIZE, _MOST_HELD_OUT = 500, 2_000
"""The largest numbers of points or features at full size, and of held-out rows."""

_LEAST_SHARES = {False: 0.4, True: 0.1}
"""The share of the seconds that must remain to start another candidate. The key is True for
candidates that are trained until their time is over, and False if training ends by itself."""

_LAST_END, _SHARE_OF_EXACT = 0.95, 0.25
"""The share of the seconds after which the last training ends, to leave time for predictions; and
the share of an exact GP, whose steps take long with many rows."""

_LEARNT = 3.0
"""The nats, over all held-out rows, by which the best candidate must exceed a constant f. (If a
constant is the truth, a given model exceeds it by so much with a probability of 5% at most.)"""

_TIE = 0.002
"""The nats a row within which candidates tie; the first of them is recommended. A small difference
at small size grows at full size (``benchmarks/pareto``: power)."""


def recommend(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    seconds: float = 60,
    *,
    X_new: Any = None,
    image_shape: Sequence[int] | None = None,
    inputs: str | None = None,
    clock: Clock = "cpu",
    seed: int = 0,
    progress: bool = True,
) -> Recommendation:
    """Recommend a model for a data set: train small versions of suitable models, and compare their
    predictions on held-out rows.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> Y = np.sin(9 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=500)
    >>> found = idm.recommend(X, Y, seconds=3, progress=False)
    >>> found.name in found.candidates, found.code.startswith("import gpflow")
    (True, True)

    Candidates for a table: an exact GP (Gaussian noise, up to 2,000 rows) or GPflow's VGP (other
    noise, up to 200 rows); GPflow's SVGP with inducing points; orthogonal points; a sum of SVGPs,
    split by negations of principal components; waves of a box (up to 3 columns); harmonics (3 to 50
    columns), chosen by the targets, or trained on minibatches with a full or a diagonal q; effects
    of single columns and of pairs; neighbours (Gaussian or Student-t noise, up to 50 columns).
    Gaussian noise adds splines (up to 2 columns), and harmonics with effects or with
    neighbours. Candidates for images: a model of patches, the exact GP, inducing points and
    orthogonal points. Candidates for latitude and longitude are models of the globe: the exact GP,
    harmonics, the nearest places by great circles, harmonics with nearest places, and inducing
    points.

    Small versions have up to 3,000 rows and 150 points or features. Neighbours and groups have up
    to 40,000 rows. Candidates whose training ends by itself are tried first; the exact GP has at
    most a quarter of the seconds. Candidates that are trained on minibatches share the rest.

    :class:`~interdomain.tables.TableScaler` standardises columns of X; degrees of a globe remain
    degrees. Y is standardised under Gaussian noise. Effects treat a column with two values as
    categories.

    :param X: ``[N, D]``, finite numbers; or a data frame of columns of numbers and of categories
        (text, or pandas' categories). A column of up to 10 categories becomes a column of zeros and
        ones for each level but the first. A column of more categories gets a number for each level
        (:class:`~interdomain.tables.GroupIntercepts`), which is added to the model of other
        columns. Leave out rows with missing values. Columns that do not vary are left out.
    :param Y: ``[N, P]`` or ``[N]``; numbers.
    :param likelihood: The likelihood of Y, such as ``gpflow.likelihoods.Bernoulli()`` for two
        classes. None, and a plain ``gpflow.likelihoods.Gaussian``, stand for Gaussian noise of one
        variance, which is trained. Other Gaussians (fixed, with a prior, a function of X, or a
        subclass) are used like every other likelihood, without scaling of Y.
    :param seconds: The time of the whole call, 60 by default. With more time, more candidates are
        tried, and candidates on minibatches are trained longer.
    :param X_new: Rows at which the model is to predict, with the columns of X. Held-out rows are
        then about as far from the training rows as X_new from X. The program of neighbours chooses
        its local kernel for X_new. By default held-out rows are drawn at random, which suits
        predictions between the rows of X, and not in gaps.
    :param image_shape: (height, width) or (height, width, channels), if rows are images.
    :param inputs: "degrees" if the two columns of X are latitude and longitude, in this order (in a
        data frame, with these names in any order); "euclidean" if they are not. By default the
        names of a data frame decide: lat, latitude, lon, lng, long, longitude and the like, if a
        column covers more than 20 degrees.
    :param clock: "cpu" counts the seconds of all processors together, so that other programs hardly
        change the answer; or "wall".
    :param seed: The seed for drawing rows and for training. The same seed gives the same answer,
        unless the time limit ends a training early.
    :param progress: Show a progress bar.
    :return: A report, when printed. ``name`` is the recommended candidate, ``code`` the program
        that makes and trains it at full size. ``race`` has the scores of small versions.
        ``learnt`` is False if no candidate predicts clearly better than the mean of Y.
        ``candidates`` has all candidates.
    :raises ValueError: For X or Y that are not finite or do not vary; for Y that the likelihood
        does not allow; for a likelihood with a function of X if X is not standardised; for fewer
        than 20 rows; for X_new with other columns than X, or for images.
    """
    choice("clock", clock, tuple(CLOCKS))
    started = CLOCKS[clock]()
    likelihood = checked_likelihood(likelihood)
    seed = integer("seed", seed, at_least=0)
    data = prepare(X, Y, likelihood, image_shape, inputs, X_new)
    check_enough("X", len(data.X), HELD_OUT)
    return choose(data, likelihood, seconds, started, clock=clock, seed=seed, progress=progress)


def choose(
    data: PreparedData,
    likelihood: Likelihood | None,
    seconds: float,
    started: float,
    *,
    clock: Clock = "cpu",
    seed: int = 0,
    progress: bool = True,
    names: Collection[str] | None = None,
    races: bool = True,
) -> Recommendation:
    """Choose among the candidates for prepared rows, as :func:`recommend` does.

    :param started: The time of the clock at which the seconds began.
    :param names: The candidates to choose among, if they suit; None for all.
    :param races: Whether candidates are compared; if False, the first candidate that suits is used.
        A single candidate is used without a race.
    :raises ValueError: If no candidate suits.
    """
    now, seconds = CLOCKS[clock], number("seconds", seconds, above=0)
    full = candidates_for(data, likelihood, _FULL_SIZE, {"steps": STEPS})
    suitable, full = list(full), {k: full[k] for k in names or full if k in full}
    if not full:
        raise ValueError(
            f"model must be one for these rows, of {data.num_numeric} columns of numbers, found "
            f"{short(list(names or ()))}; pass 'auto' for one of {', '.join(suitable)}."
        )
    if len(full) == 1 or not races:
        race_of_none = Race({}, (seconds,), clock, len(data.X), 0)
        return Recommendation(
            next(iter(full)), data.sentences, race_of_none, full, now() - started, data=data
        )
    sample = with_fewer_levels(data, seed)
    number_apart = max(min(len(sample.X) // HELD_OUT, _MOST_HELD_OUT), 1)
    compared, new = sample.X[:, : data.num_numeric], sample.X_new
    if new is not None:
        new = new[:, : data.num_numeric]
    if data.on_globe and new is not None:
        compared, new = (np.asarray(unit_vectors(part)) for part in (compared, new))
    test_rows, order = held_out_rows(compared, number_apart, seed, new)
    apart, rows = len(test_rows), order[:_ROWS]
    # Columns of levels that few rows miss are left out; pixels may be constant.
    columns = np.ptp(sample.X[rows], axis=0) > 0
    columns |= data.image_shape is not None or data.on_globe
    columns[data.num_numeric :] = True
    parts = rows, order[:_ROWS_NEARBY], test_rows
    train, many, held_out = ((sample.X[part][:, columns], sample.Y[part]) for part in parts)
    few = sample.restricted_to(columns, *train)
    small = candidates_for(few, likelihood, _SIZE, {})

    # Candidates whose training ends by itself come first; the others share the time that is left.
    endless = {name: "batch_size" in (one.entrant[1] or {}) for name, one in full.items()}
    in_turn = sorted(full, key=endless.__getitem__)

    def in_time(step: int, model: Any) -> None:
        """Stop the passes over the rows when the seconds are over."""
        if now() - started > _LAST_END * seconds:
            raise StopFit("the seconds are over")

    entries: dict[str, RaceEntry] = {}
    bar = progress_bar("recommend", "model", len(in_turn), shown=progress, iterable=in_turn)
    for place, name in enumerate(bar):
        bar.set_postfix_str(name)
        left = _LAST_END * seconds - (now() - started)
        if entries and left < _LEAST_SHARES[endless[name]] * seconds:
            continue
        if endless[name]:
            left /= len(in_turn) - place + 1  # the last part is for predictions
        elif name == "exact":
            left = min(left, _SHARE_OF_EXACT * seconds)
        traces = (entries[part].trace for part in _PARTS.get(name, ()) if part in entries)
        if name in small and left > sum(trace[-1][0] for trace in traces if trace):
            build, training = small[name].entrant
            if likelihood is not None and training is not None and not endless[name]:
                training = {**training, "callbacks": [in_time]}
            # Warnings and bars of small versions are hidden.
            with warnings.catch_warnings(), bars(shown=False):
                warnings.simplefilter("ignore")
                entries |= race(
                    {name: (build, training)},
                    many if name.endswith("neighbours") or data.num_levels else train,
                    [left],
                    validation_data=held_out,
                    clock=clock,
                    seed=seed,
                    progress=False,
                ).entries
    outcome = Race(entries, (seconds,), clock, len(rows), apart)
    last = {name: entry.trace[-1][1] for name, entry in entries.items() if entry.trace}
    densities = {name: density for name, density in last.items() if math.isfinite(density)}
    # The first candidate that ties with the best; without a race, the first of all.
    best = max(densities.values(), default=-math.inf)
    winner = next(name for name in full if densities.get(name, -math.inf) >= best - _TIE)
    sentences = list(data.sentences)
    baseline = density_of_the_mean(likelihood, train, held_out) if densities else -math.inf
    learnt = not densities or not apart * (best - baseline) <= _LEARNT
    if not learnt:
        sentences.insert(
            0,
            f"No candidate is clearly better than the mean of Y: on {apart:,} held-out rows the "
            f"best has a mean log density of {best:.4f}, the mean of Y {baseline:.4f}. Pass other "
            "columns, more rows, or more seconds.",
        )
    if winner == "neighbours" and BOTH in full and BOTH not in densities:
        winner = BOTH
        sentences.append(
            "Neighbours predict best. There was no time to try them with harmonics, but their "
            "training tries each part alone, and keeps the parts that the evidence prefers."
        )
    elif winner not in densities:
        sentences.append(
            f"No model was ready within {seconds:g} s: this model suits such data most often. Pass "
            "more seconds."
        )
    if likelihood is None and len(np.unique(data.Y)) == 2:
        sentences.append(
            "Y has two values: if these are classes, pass 0 and 1 and "
            "likelihood=gpflow.likelihoods.Bernoulli()."
        )
    if not_tried := [name for name in in_turn if name not in entries]:
        sentences.append(f"Not tried, for want of time: {', '.join(not_tried)}.")
    passed = now() - started
    return Recommendation(winner, tuple(sentences), outcome, full, passed, learnt, data=data)
