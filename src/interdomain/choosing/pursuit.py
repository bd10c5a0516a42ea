"""Matching pursuit in blocks over an orthogonal dictionary, which chooses features by the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from .._arguments import Array, IntArray
from .._progress import progress_bar
from ..core.dictionaries import Dictionary, others_than
from ..core.family import Block
from ..core.finite_rank import block_of
from ..core.pairs import dictionary_of

MOST_CANDIDATES = 5_000

LEAST_GAIN = 2.0
"""The least gain of the bound, in nats, for which the data choose a feature."""

_SHORTLIST = 3
"""The number of shortlisted candidates for each feature that a round may add."""

_LEAST_SHORTLIST = 500

_POOL_ROWS = 2_000
"""The number of rows over which prior variances are averaged."""


@dataclass(frozen=True)
class PursuitRound:
    """One round of the choice of features.

    :ivar num_inducing: The number M of features after the round.
    :ivar num_candidates: The number of candidate features; 0 for the model before the first round,
        and for a last round that adds features of largest prior variance.
    :ivar elbo: The bound of the model with these features.
    """

    num_inducing: int
    num_candidates: int
    elbo: float


@dataclass(frozen=True, eq=False)
class Pursuit:
    """A report of how matching pursuit chose features.

    :ivar rounds: The rounds; the first entry is the model before the pursuit.
    :ivar best: The index of the round whose features and parameters the model has.
    :ivar atoms: The atoms of its features, ``[A, k]``: chains of degrees, or frequencies.
    :ivar reason: Why the pursuit ended. "num_inducing": there is no room for more features.
        "candidates": there are no more candidates. "elbo": the bound did not rise, or no feature
        would raise it by ``least_gain``. "few": the last round found too few features that are
        worth adding.
    """

    rounds: tuple[PursuitRound, ...]
    best: int
    atoms: IntArray = field(repr=False)
    reason: str

    def __str__(self) -> str:
        lines = [" features  candidates          bound"]
        for row, (size, count, elbo) in enumerate(map(astuple, self.rounds)):
            lines.append(f"{size:9,}  {count:10,}  {elbo:13.1f}" + " *" * (row == self.best))
        return "\n".join([*lines, f"ended by {self.reason}"])


def pursue(
    model: Any,
    num_inducing: int,
    *,
    growth: float = 1.5,
    train: Callable[[], None] | None = None,
    max_candidates: int = MOST_CANDIDATES,
    least_gain: float = LEAST_GAIN,
    fill: bool = True,
    least_share: float = 0.0,
    progress: bool = True,
) -> Pursuit:
    """Choose features of an orthogonal dictionary by the data, best first.

    The features of largest prior variance need not be those that explain y. The pursuit starts with
    the features of the model, and adds features in rounds. In every round:

    1. The candidates are the features of largest prior variance over the rows, and the neighbours
       of the model's features. Neighbours are harmonics of one more degree at one coordinate, or
       waves of one more period in one column. High degrees are reached if the data require them.
    2. One pass over the rows gives a shortlist of the candidates that would each, alone, raise the
       marginal likelihood most. A second pass computes the products of the shortlist with itself
       and with the model's features. Candidates are then added one by one, until M has grown by the
       factor ``growth``; the next always raises the marginal likelihood most, given all before it.
    3. The sums of the model with the new features are computed, and its parameters are trained.

    This is orthogonal matching pursuit (Pati et al. 1993) in blocks, in the kernel's geometry: a
    round costs O(N C + N M^2) for C candidates. With :class:`interdomain.kernels.FiniteRank`, the
    features define the model, and few rows can be overfitted. ``least_gain``, ``fill`` and held-out
    rows (:mod:`.choice`) limit overfitting.

    :param model: A regression model or one with sites, with the methods ``draw``, ``elbo``,
        ``residuals``, ``whitened_mean`` and ``replace_features``.
    :param num_inducing: The largest number M of features.
    :param train: Trains the model after each round.
    :param max_candidates: The largest number of candidates by prior variance, and of neighbours.
    :param least_gain: The least number of nats by which a feature must raise the bound. Among many
        candidates some fit the noise.
    :param fill: Whether to add features of largest prior variance until ``num_inducing`` is
        reached. A prior that consists of the features needs them: with only the features that fit y
        best, its predictions are overconfident.
    :param least_share: The pursuit ends after a round that adds less than this share of the
        features that the round wanted.
    :raises ValueError: If the features belong to no dictionary, or the model has no rows.
    """
    dictionary, X = arranged_dictionary(model)
    pool = dictionary.likeliest(X, max(max_candidates, num_inducing))
    state = _Rounds(model, dictionary, train)
    start: dict[str, Any] = {"shown": progress, "initial": state.size}
    with progress_bar("pursuit", "feature", num_inducing, **start) as bar:
        ended: str | None = None
        while ended is None and (before := state.size) < num_inducing:
            wanted = min(max(int(round(before * growth)), before + 1), num_inducing) - before
            candidates, room = state.candidates(pool, max_candidates), num_inducing - before
            atoms, count, ended = state.best_of(candidates, wanted, room, least_gain)
            if ended is None and not state.take([*state.atoms, *atoms], count):
                ended = "elbo"
            elif ended is None and state.size - before < least_share * wanted:
                ended = "few"
            bar.update(state.size - before)
            bar.set_postfix_str(f"bound {state.rounds[-1].elbo:.1f}")
        if fill:  # with atoms of largest prior variance
            rest = others_than(state.atoms, pool)
            if len(rest):
                rest = rest[np.cumsum(state.sizes(rest)) <= num_inducing - state.size]
            if len(rest):
                state.take([*state.atoms, *rest], 0, is_better=True)
    reason = ended or "num_inducing"
    return Pursuit(tuple(state.rounds), state.best, state.atoms, reason)


class _Rounds:
    """The rounds so far, the best round, whose features the model has, and the model's atoms."""

    best: int
    atoms: IntArray

    def __init__(
        self, model: Any, dictionary: Dictionary, train: Callable[[], None] | None
    ) -> None:
        self._model, self._dictionary, self._train = model, dictionary, train
        self.rounds: list[PursuitRound] = []
        self.take(dictionary.atoms, 0, is_better=True)

    @property
    def size(self) -> int:
        """The present number M of features."""
        return int(self._model.inducing_variable.num_inducing)

    def take(self, atoms: Any, count: int, *, is_better: bool = False) -> bool:
        """Try these atoms, from ``count`` candidates, and train. True if the model is the best so
        far, or if ``is_better``; otherwise False, and the best model is restored."""
        model, atoms = self._model, np.asarray(atoms)
        block = block_of(self._dictionary, atoms)
        model.replace_features(*block)
        if self.rounds and self._train is not None and model.trainable_parameters:
            self._train()
        self.rounds.append(PursuitRound(self.size, count, float(model.elbo())))
        if is_better or self.rounds[-1].elbo > self.rounds[self.best].elbo:
            self.best, self.atoms, self._block = len(self.rounds) - 1, atoms, block
            variables = [p.unconstrained_variable for p in model.trainable_parameters]
            self._values = [(variable, variable.numpy()) for variable in variables]
            return True
        for variable, value in self._values:
            variable.assign(value)
        model.replace_features(*self._block)
        return False

    def candidates(self, pool: IntArray, limit: int) -> IntArray:
        """The atoms of a pool, and neighbours of the atoms of largest posterior mean."""
        energies = np.sum(np.square(self._model.whitened_mean().numpy()), axis=1)
        owners, size = self._dictionary.owners(self.atoms), len(self.atoms)
        weights = np.bincount(owners, energies, minlength=size)
        around = self._dictionary.neighbours(self.atoms[_decreasing(weights)], limit)
        return others_than(self.atoms, np.concatenate([pool, around]))

    def best_of(
        self, candidates: IntArray, count: int, room: int, least_gain: float
    ) -> tuple[IntArray, int, str | None]:
        """The best candidates that fit into ``room``, with about ``count`` features; the number of
        features among all candidates; and the reason if there are none."""
        if not len(candidates):
            return candidates, 0, "candidates"
        sizes, dictionary = self.sizes(candidates), self._dictionary
        candidates, sizes = candidates[sizes <= room], sizes[sizes <= room]
        if not len(candidates):
            return candidates, 0, "num_inducing"
        count = max(count, int(np.max(sizes)))  # an atom cannot be split
        residuals = self._model.residuals()
        price = 0.0 if dictionary.finite_rank else residuals.price
        owners = dictionary.owners(candidates)
        gains = residuals.screen(dictionary.features(candidates)).gains(price)
        order = _decreasing(np.bincount(owners, gains) / sizes)
        most = max(_SHORTLIST * count, _LEAST_SHORTLIST)
        shortlist = candidates[np.sort(order[np.cumsum(sizes[order]) <= most])]
        compared = residuals.compare(dictionary.features(shortlist))
        taken = compared.best(dictionary.owners(shortlist), count, price, least_gain)
        return shortlist[taken], len(owners), None if taken else "elbo"

    def sizes(self, atoms: IntArray) -> IntArray:
        """The number of features of each atom, ``[A]``."""
        return np.bincount(self._dictionary.owners(atoms), minlength=len(atoms))


def _decreasing(values: Any) -> IntArray:
    """The indices that sort values in decreasing order; equal values keep their order."""
    return np.argsort(-values, kind="stable")


def arranged_dictionary(model: Any, block: Block | None = None) -> tuple[Dictionary, Array]:
    """The dictionary of a model's features, arranged for some rows, and the inputs of these rows.

    :param block: An inducing variable and its kernel, to use instead of the model's.

    :raises ValueError: If the features belong to no dictionary.
    """
    dictionary = dictionary_of(*(block or (model.inducing_variable, model.kernel)))
    if dictionary is None:
        raise ValueError(
            "model.inducing_variable must be made of features of an orthogonal dictionary, found "
            f"{type(model.inducing_variable).__name__} with {type(model.kernel).__name__}; pass a "
            "model with SphericalHarmonics or BoxFourierFeatures."
        )
    X: Array = model.draw(_POOL_ROWS)[0]
    return dictionary.arranged(X), X
