"""Matching pursuit in blocks over an orthogonal dictionary: the data choose features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from .._arguments import Array, IntArray
from .._progress import progress_bar
from ..core.dictionaries import Dictionary, others_than
from ..core.finite_rank import block_of
from ..core.pairs import dictionary_of

MOST_CANDIDATES = 5_000
LEAST_GAIN = 2.0  # nats of the bound that a feature has to gain to be chosen by the data

_SHORTLIST = 3  # candidates to compare with each other, for each feature that a round may take
_LEAST_SHORTLIST = 500
_POOL_ROWS = 2_000  # over which prior variances are averaged


@dataclass(frozen=True)
class PursuitRound:
    """One round of the choice of features.

    :ivar num_inducing: the number M of features after the round.
    :ivar num_candidates: the number of features to choose from; 0 for the model before the first
        round, and for a last round that fills up with features of largest prior variance.
    :ivar elbo: the bound of the model with these features.
    """

    num_inducing: int
    num_candidates: int
    elbo: float


@dataclass(frozen=True, eq=False)
class Pursuit:
    """How features were chosen by matching pursuit.

    :ivar rounds: the rounds; the first entry is the model before the pursuit.
    :ivar best: the index of the round that the model is at now.
    :ivar atoms: what its features are, ``[A, k]``: chains of degrees, or frequencies.
    :ivar reason: why the pursuit ended: "num_inducing" (there is no room for more features),
        "candidates" (there are no more features to choose from), "elbo" (the bound did not rise,
        or no feature would raise it by ``least_gain``), or "few" (the last round found too few
        features that are worth adding).
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
    """Let the data choose features of an orthogonal dictionary, best first.

    The features of largest prior variance need not be those that explain y. The pursuit starts from
    the features that the model has, and adds more in rounds. In every round:

    1. The candidates are the features of largest prior variance over the rows, and the neighbours
       of the model's features: harmonics of one degree more at one coordinate, or waves of one
       period more in one column. High degrees are reached this way where the data call for them.
    2. One pass over the rows gives a shortlist of the candidates that would each raise the marginal
       likelihood most alone. A second pass computes the products of the shortlist with itself and
       with the model's features. Candidates are then added one by one, always the one that raises
       the marginal likelihood most given all before, until M has grown by the factor ``growth``.
    3. The sums of the model with the new features are taken, and its parameters are trained.

    This is orthogonal matching pursuit (Pati et al. 1993) in blocks, in the kernel's geometry: a
    round is O(N C + N M^2) for C candidates. With :class:`interdomain.kernels.FiniteRank`, choosing
    features changes the model, and few rows can be overfitted; ``least_gain`` and ``fill`` guard
    against that, and rows held out (:mod:`.choice`).

    :param model: a regression model or one with sites, with the methods ``draw``, ``elbo``,
        ``residuals`` and ``whitened_mean``. Its features and its kernel are replaced.
    :param num_inducing: the largest number M of features to end with.
    :param train: trains the model after each round.
    :param max_candidates: the largest number of candidates by prior variance, and of neighbours.
    :param least_gain: by how many nats a feature has to raise the bound to be added. Among many
        candidates some fit the noise.
    :param fill: whether to use what is then left of ``num_inducing`` for the features of largest
        prior variance, which a prior that consists of the features needs: with only those that fit
        y best, its predictions are overconfident.
    :param least_share: the pursuit ends after a round that adds fewer than this share of the
        features that it wanted.
    :raises ValueError: for features that belong to no dictionary, or a model without its rows.
    """
    dictionary, X = arranged_dictionary(model)
    pool = dictionary.likeliest(X, max(max_candidates, num_inducing))
    state = _Rounds(model, dictionary, train)
    ended: str | None = None
    bar = progress_bar("pursuit", "feature", num_inducing, shown=progress, initial=state.size)
    with bar:
        while ended is None and (before := state.size) < num_inducing:
            wanted = min(max(int(round(before * growth)), before + 1), num_inducing) - before
            candidates = _candidates(model, dictionary, state.atoms, pool, max_candidates)
            room = num_inducing - before
            atoms, count, ended = _best_of(model, dictionary, candidates, wanted, room, least_gain)
            if ended is None and not state.take([*state.atoms, *atoms], count):
                ended = "elbo"
            elif ended is None and state.size - before < least_share * wanted:
                ended = "few"
            bar.update(state.size - before)
            bar.set_postfix_str(f"bound {state.rounds[-1].elbo:.1f}")
        if fill:  # with those of most prior variance
            rest = others_than(state.atoms, pool)
            if len(rest):
                rest = rest[np.cumsum(_sizes(dictionary, rest)) <= num_inducing - state.size]
            if len(rest):
                state.take([*state.atoms, *rest], 0, is_better=True)
    return Pursuit(tuple(state.rounds), state.best, state.atoms, ended or "num_inducing")


class _Rounds:
    """The rounds so far, and the best of them, which the model is at.

    :ivar atoms: those of the model's features.
    """

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
        """The number M of features now."""
        return int(self._model.inducing_variable.num_inducing)

    def take(self, atoms: Any, count: int, *, is_better: bool = False) -> bool:
        """Take atoms, and train: whether the model is the best so far; else it is that again.

        :param count: The number of candidates.
        :param is_better: Whether it is, whatever its bound.
        """
        model, atoms = self._model, np.asarray(atoms)
        model.inducing_variable, model.kernel = block = block_of(self._dictionary, atoms)
        if self.rounds and self._train is not None and model.trainable_parameters:
            self._train()
        self.rounds.append(PursuitRound(self.size, count, float(model.elbo())))
        if is_better or self.rounds[-1].elbo > self.rounds[self.best].elbo:
            self.best, self.atoms, self._block = len(self.rounds) - 1, atoms, block
            variables = [p.unconstrained_variable for p in model.trainable_parameters]
            self._values = [(variable, variable.numpy()) for variable in variables]
            return True
        model.inducing_variable, model.kernel = self._block
        for variable, value in self._values:
            variable.assign(value)
        return False


def _best_of(
    model: Any,
    dictionary: Dictionary,
    candidates: IntArray,
    count: int,
    room: int,
    least_gain: float,
) -> tuple[IntArray, int, str | None]:
    """The best candidates, of about ``count`` features, for which there is room; the number of
    features there were to choose from; and why there are none."""
    if not len(candidates):
        return candidates, 0, "candidates"
    sizes = _sizes(dictionary, candidates)
    candidates, sizes = candidates[sizes <= room], sizes[sizes <= room]
    if not len(candidates):
        return candidates, 0, "num_inducing"
    count = max(count, int(np.max(sizes)))  # an atom is taken as a whole
    residuals = model.residuals()
    price = 0.0 if dictionary.finite_rank else residuals.price
    owners = dictionary.owners(candidates)
    sums = residuals.screen(dictionary.features(candidates))
    means = np.bincount(owners, sums.gains(price)) / sizes
    order = _decreasing(means)
    most = max(_SHORTLIST * count, _LEAST_SHORTLIST)
    shortlist = candidates[np.sort(order[np.cumsum(sizes[order]) <= most])]
    compared = residuals.compare(dictionary.features(shortlist))
    of_shortlist = dictionary.owners(shortlist)
    taken = compared.best(of_shortlist, count, price, least_gain)
    return shortlist[taken], len(owners), None if taken else "elbo"


def _sizes(dictionary: Dictionary, atoms: IntArray) -> IntArray:
    """How many features each of some atoms has, ``[A]``."""
    return np.bincount(dictionary.owners(atoms), minlength=len(atoms))


def _candidates(
    model: Any, dictionary: Dictionary, atoms: IntArray, pool: IntArray, limit: int
) -> IntArray:
    """The atoms of most prior variance, and neighbours of those of largest posterior mean."""
    energies = np.sum(np.square(model.whitened_mean().numpy()), axis=1)
    weights = np.bincount(dictionary.owners(atoms), energies, minlength=len(atoms))
    around = dictionary.neighbours(atoms[_decreasing(weights)], limit)
    return others_than(atoms, np.concatenate([pool, around]))


def _decreasing(values: Any) -> IntArray:
    """The places of the largest values first; of equal ones, the first."""
    return np.argsort(-values, kind="stable")


def arranged_dictionary(model: Any) -> tuple[Dictionary, Array]:
    """The dictionary of a model's features, and inputs of some rows that it is arranged for.

    :raises ValueError: If they belong to no dictionary.
    """
    dictionary = dictionary_of(model.inducing_variable, model.kernel)
    if dictionary is None:
        raise ValueError(
            "model.inducing_variable must be made of features of an orthogonal dictionary, found "
            f"{type(model.inducing_variable).__name__} with {type(model.kernel).__name__}; pass a "
            "model with SphericalHarmonics or BoxFourierFeatures."
        )
    X: Array = model.draw(_POOL_ROWS)[0]
    return dictionary.arranged(X), X
