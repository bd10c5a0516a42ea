"""Recommends a model for a data set: compares small versions of suitable models in a race."""

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
"""The largest number of training rows for models of neighbours: among few rows, neighbours are far.
So it is for models of groups, which have few rows each.
(Models that predict by more rows than they were trained on are too sure of repeated rows.)"""

_PARTS = {"effects and harmonics": ("effects", "harmonics"), BOTH: ("harmonics", "neighbours")}
"""Candidates that are two others together, and take longer than both."""

_FULL_SIZE, _MOST_HELD_OUT = 500, 2_000
"""The largest numbers of points or features at full size, and of held-out rows."""

_LEAST_SHARES = {False: 0.4, True: 0.1}
"""The share of the seconds that has to be left for a further candidate, by whether its training
ends at a time that it is given, and not by itself."""

_LAST_END, _SHARE_OF_EXACT = 0.95, 0.25
"""The shares of the seconds after which the last training has to end, so that there is time to
predict, and for an exact GP, whose steps take long with many rows."""

_LEARNT = 3.0
"""In nats, over all held-out rows: by how much the best candidate has to exceed the mean of Y. (If
the mean of Y is the truth, a given model does so with a probability of 5% at most.)"""

_TIE = 0.002
"""In nats a row: among candidates that are this close, the one that is named first is taken. A
candidate that is slightly better at small size is ahead by more at full size
(``benchmarks/pareto``: power)."""


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
    """Recommend a model for a data set, by training small versions of suitable models and comparing
    their predictions on held-out rows.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> Y = np.sin(9 * X[:, 0]) * X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=500)
    >>> found = idm.recommend(X, Y, seconds=3, progress=False)
    >>> found.name in found.candidates, found.code.startswith("import gpflow")
    (True, True)

    The candidates for a table are an exact GP (for Gaussian noise and up to 2,000 rows) or GPflow's
    VGP (for another likelihood and up to 200 rows); GPflow's SVGP with inducing points, orthogonal
    points, and a sum of blocks along negations of principal components; waves of a box (up to three
    columns); harmonics that the targets choose, or with a full or a diagonal q trained on
    minibatches (3 to 50 columns); effects of single columns and of pairs; and, for Gaussian noise,
    these together with harmonics, splines (up to two columns), the nearest rows, and these for what
    harmonics leave. For images the candidates are a model on patches, the exact GP, inducing points
    and orthogonal points. For two columns of latitude and longitude they are models of the globe:
    the exact GP, harmonics, the nearest places by great circles, both together, and inducing
    points.

    Small versions have up to 3,000 rows and 150 points or features; of neighbours up to 40,000
    rows, since among few the nearest are far. Candidates whose training ends by itself are tried
    first, and the exact GP has a quarter of the seconds at most; the others, which are trained on
    minibatches, share the time that is left.

    :class:`~interdomain.tables.TableScaler` standardises columns of X, and degrees of a globe
    remain as they are. Y is standardised under Gaussian noise. A column with two values counts as
    categories where effects of columns are summed.

    :param X: ``[N, D]``, finite numbers; or a data frame of columns of numbers and of categories
        (text, or what pandas calls a category). A column of up to 10 categories becomes a column of
        zeros and ones for each level but the first; one of more gets a number for each level, as
        :class:`~interdomain.tables.GroupIntercepts`, beside the model of the other columns. Leave
        out rows with missing values. Columns that do not vary are left out.
    :param Y: ``[N, P]`` or ``[N]``; numbers.
    :param likelihood: The likelihood of Y, such as ``gpflow.likelihoods.Bernoulli()`` for two
        classes. None for Gaussian noise of one variance, which is trained: so is a
        ``gpflow.likelihoods.Gaussian`` that says no more. One with a variance that is fixed, has a
        prior or is a function of X, and a subclass, are used like every other likelihood, for Y as
        it is.
    :param seconds: The time for everything: with more time more candidates are tried, and those of
        minibatches trained for longer.
    :param X_new: Rows at which the model is to predict, with the columns of X: held-out rows are
        then drawn so that their distances to the training rows are like the distances of these rows
        to X, and the program of neighbours chooses its local kernel for them. By default held-out
        rows are drawn at random, which suits rows among the others, and not gaps.
    :param image_shape: (height, width) or (height, width, channels), if rows are images.
    :param inputs: "degrees" if the two columns of X are latitude and longitude, in this order (in a
        data frame, with these names in any order); "euclidean" if they are not. By default they are
        recognised by the names of a data frame: lat, latitude, lon, lng, long, longitude and the
        like, over more than 20 degrees.
    :param clock: "cpu" counts the seconds of all processors together, so that other programs
        hardly change the answer; or "wall".
    :param seed: The seed for drawing rows and for training. The same seed gives the same answer,
        unless the time limit cuts something short.
    :param progress: Show a progress bar.
    :return: A report, when printed. ``name`` is the recommended candidate, ``code`` the program
        that makes and trains it at full size; ``race`` says how well small versions predicted,
        ``learnt`` whether any exceeds the mean of Y clearly, and ``candidates`` has them all.
    :raises ValueError: For X or Y that are not finite, Y that does not vary, X of which no column
        does, Y that is unknown to the likelihood, a likelihood with a function of X that is not
        standardised, or fewer than 20 rows, of which 4 are held out; for X_new with other columns
        than X, or of images.
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
    """Choose among the candidates for prepared rows: see :func:`recommend`.

    :param started: When the seconds began, by the clock.
    :param names: The candidates to choose among, if they suit; None for all.
    :param races: Whether they are compared; otherwise the first that suits is taken. One alone is
        taken without a race.
    :raises ValueError: If none of them suits.
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
    # In few rows a rare level may be missing; pixels may be the same anyway.
    columns = np.ptp(sample.X[rows], axis=0) > 0
    columns |= data.image_shape is not None or data.on_globe
    columns[data.num_numeric :] = True
    parts = rows, order[:_ROWS_NEARBY], test_rows
    train, many, held_out = ((sample.X[part][:, columns], sample.Y[part]) for part in parts)
    few = sample.restricted_to(columns, *train)
    small = candidates_for(few, likelihood, _SIZE, {})

    # Candidates that end by themselves come first: the others share whatever time is left.
    endless = {name: "batch_size" in (one.entrant[1] or {}) for name, one in full.items()}
    in_turn = sorted(full, key=endless.__getitem__)

    def in_time(step: int, model: Any) -> None:
        """Passes over the rows end with the seconds."""
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
            # Warnings and bars of small versions are not the user's.
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
    # The best; of those that tie, the one that is named first. Without a race, the first.
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
            "The nearest rows are in front. There was no time to try them with harmonics, but "
            "training tries each part alone, and keeps what the evidence prefers."
        )
    elif winner not in densities:
        sentences.append(
            f"No model was ready within {seconds:g} s: this is the one that suits such data most "
            "often. Pass more seconds."
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
