"""Lets the data choose features: matching pursuit in blocks over an orthogonal dictionary."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from tqdm import tqdm

from .._arguments import boolean, integer, number
from .._tracing import operation_by_operation
from ..covariances.dictionaries import Dictionary, dictionary
from ..covariances.pairs import Block
from ..distributed import Workers
from ..models import StructuredSGPR
from ..models.residuals import Residuals
from ..sphere._typing import Array, IntArray
from .arguments import pair_of_matrices
from .loop import fit_quietly

MOST_CANDIDATES = 5_000

LEAST_GAIN = 2.0
"""How many nats of the bound a feature has to gain to be chosen by the data."""

_SHORTLIST = 3
"""Candidates that are compared with each other, for each feature that a round may take."""

_LEAST_SHORTLIST = 500

_POOL_ROWS = 2_000
"""Rows over which prior variances are averaged."""


class Pursued(Protocol):
    """What a pursuit needs of a model: a regression model, or one with sites for a likelihood.

    A pursuit replaces its features and its kernel; everything that depends on them must be up to
    date whenever it is read.
    """

    inducing_variable: Any
    kernel: Any

    @property
    def workers(self) -> Workers: ...

    @property
    def num_latent_gps(self) -> int: ...

    @property
    def trainable_parameters(self) -> tuple[gpflow.Parameter, ...]: ...

    def draw(self, size: int, *, seed: int = 0) -> tuple[Array, Array]: ...

    def elbo(self) -> tf.Tensor | float: ...

    def residuals(self) -> Residuals: ...

    def whitened_mean(self) -> tf.Tensor: ...

    def predict_log_density(self, data: RegressionData) -> tf.Tensor: ...


@dataclass(frozen=True)
class PursuitRound:
    """
    One round of :func:`matching_pursuit`.

    :ivar num_inducing: the number M of features after the round.
    :ivar num_candidates: the number of features to choose from; 0 for the model before the first
        round, and for a last round that fills up with features of largest prior variance.
    :ivar elbo: the bound of the model with these features.
    :ivar held_out: the mean log density of the held-out rows; None without ``validation_data``.
    :ivar seconds: the seconds since the pursuit started.
    """

    num_inducing: int
    num_candidates: int
    elbo: float
    held_out: float | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Pursuit:
    """
    What :func:`matching_pursuit` did.

    :ivar rounds: the rounds; the first entry is the model before the pursuit.
    :ivar best: the index of the round that the model is at now.
    :ivar atoms: what its features are, ``[A, k]``: chains of degrees, or frequencies.
    :ivar reason: why the pursuit ended: "num_inducing" (there is no room for more features),
        "candidates" (there are no more features to choose from), "elbo" (the bound did not rise,
        or no feature would raise it by ``least_gain``), "held_out" (the log density of held-out
        rows did not rise), or "few" (the last round found too few features that are worth adding).
    """

    rounds: tuple[PursuitRound, ...]
    best: int
    atoms: IntArray = field(repr=False)
    reason: str

    def __str__(self) -> str:
        lines = [" features  candidates          bound   held out  seconds"]
        for row, one in enumerate(self.rounds):
            held_out = f"{'':10}" if one.held_out is None else f"{one.held_out:10.4f}"
            mark = " *" if row == self.best else ""
            lines.append(
                f"{one.num_inducing:9,}  {one.num_candidates:10,}  {one.elbo:13.1f} {held_out}  "
                f"{one.seconds:7.1f}{mark}"
            )
        return "\n".join([*lines, f"ended by {self.reason}"])


def matching_pursuit(
    model: StructuredSGPR,
    num_inducing: int,
    *,
    growth: float = 1.5,
    steps: int = 6,
    max_candidates: int = MOST_CANDIDATES,
    validation_data: RegressionData | None = None,
    least_gain: float = LEAST_GAIN,
    fill: bool = True,
    progress: bool = True,
) -> Pursuit:
    """
    Let the data choose features of an orthogonal dictionary, best first.

    The features of largest prior variance need not be those that explain y. This function starts
    from the features that the model has, and adds more in rounds. In every round:

    1. The candidates are the features of largest prior variance over the rows, and the neighbours
       of the model's features: harmonics of one degree more at one coordinate, or waves of one
       period more in one column. High degrees are reached this way where the data call for them.
    2. One pass over the rows computes the products of the candidates with the residuals of the
       model. They give a shortlist of the candidates that would each raise the marginal likelihood
       most alone. A second pass computes the products of the shortlist with itself and with the
       model's features. Candidates are then added one by one, always the one that raises the
       marginal likelihood most given all before, until M has grown by the factor ``growth``.
    3. A third pass computes the sums of the model with the new features, and the trainable
       parameters take ``steps`` steps of L-BFGS on them: what looks like noise with few features
       may be explained with more.

    This is orthogonal matching pursuit (Pati et al. 1993) in blocks, in the kernel's geometry. The
    Gram matrix of all candidates is not needed: a round is O(N C + N M^2) for C candidates.

    If the kernel does not depend on the features, every feature that is added raises the bound,
    which remains a bound on the same evidence. Choosing features is then as safe as moving inducing
    points. With :class:`interdomain.kernels.FiniteRank` the prior consists of the features:
    choosing them changes the model, and few rows can be overfitted. ``least_gain``, ``fill`` and
    ``validation_data`` guard against that.

    :param model: a model whose features belong to a dictionary:
        :class:`~interdomain.inducing_variables.SphericalHarmonics`,
        :class:`~interdomain.inducing_variables.PeriodicFourierFeatures`, products of these (made of
        the features that the factors have), or sums of these; a sum may also have other features,
        which are kept unchanged. Its ``inducing_variable`` is replaced, and also its kernel if that
        is a FiniteRank. With a ``strategy`` all workers must call this.
    :param num_inducing: the largest number M of features to end with; at least as many as the model
        has.
    :param growth: the factor by which M grows in a round, above 1.
    :param steps: the number of L-BFGS iterations between rounds, for all trainable parameters; 0
        for none. If features depend on some of these parameters, each iteration is a pass over the
        rows.
    :param max_candidates: the largest number of candidates by prior variance, and the largest
        number of neighbours. Neighbours of the features with the largest posterior means come
        first.
    :param validation_data: held-out rows (X ``[n, D]``, Y ``[n, P]``): the pursuit ends when their
        mean log density does not rise.
    :param least_gain: by how many nats a feature has to raise the bound to be added; when no
        candidate does, the pursuit ends. Among many candidates some fit the noise: with 0 these are
        added as well.
    :param fill: whether to use what is then left of ``num_inducing`` for the features of largest
        prior variance. They do not depend on y. A prior that consists of the features needs them:
        with only the features that fit y best, its predictions are overconfident.
    :param progress: show a progress bar.
    :raises ValueError: for wrong arguments, a model of another class, features that belong to no
        dictionary, or a model without its rows.
    """
    if not isinstance(model, StructuredSGPR):
        raise ValueError(
            f"model must be an interdomain.models.StructuredSGPR, found {type(model).__name__}; "
            "pass one, of a subset of the rows if there are many. For other likelihoods call "
            "fit_collapsed with num_inducing."
        )
    return pursue(
        model,
        num_inducing,
        growth=growth,
        steps=steps,
        max_candidates=max_candidates,
        validation_data=validation_data,
        least_gain=least_gain,
        fill=fill,
        progress=progress,
    )


def pursue(
    model: Pursued,
    num_inducing: int,
    *,
    growth: float = 1.5,
    steps: int = 6,
    max_candidates: int = MOST_CANDIDATES,
    validation_data: RegressionData | None = None,
    least_gain: float = LEAST_GAIN,
    fill: bool = True,
    least_share: float = 0.0,
    progress: bool = True,
) -> Pursuit:
    """
    :func:`matching_pursuit` for any :class:`Pursued` model.

    :param least_share: the pursuit ends after a round that adds fewer than this share of the
        features that it wanted: further rounds would find only a few neighbours of these.
    """
    started = time.perf_counter()
    size = int(model.inducing_variable.num_inducing)
    remedy = "it counts those that the model has, and they stay"
    num_inducing = integer("num_inducing", num_inducing, at_least=size, remedy=remedy)
    growth = number("growth", growth, above=1)
    steps = integer("steps", steps, at_least=0)
    max_candidates = integer("max_candidates", max_candidates, at_least=1)
    least_gain = number("least_gain", least_gain, at_least=0)
    boolean("fill", fill)
    boolean("progress", progress)
    pursuit = _Pursuit(
        model, num_inducing, max_candidates, steps, least_gain, validation_data, started
    )
    with tqdm(
        total=num_inducing,
        initial=pursuit.size,
        desc="pursuit",
        unit="feature",
        disable=not (progress and model.workers.is_chief),
        file=sys.stderr,
        dynamic_ncols=True,
    ) as bar:
        reason = pursuit.run(num_inducing, growth, least_share, bar)
        if fill:
            pursuit.fill(num_inducing, bar)
    return Pursuit(tuple(pursuit.rounds), pursuit.best, pursuit.best_atoms, reason)


class _State(NamedTuple):
    """A model that can be gone back to."""

    atoms: IntArray
    block: Block
    values: list[tuple[tf.Variable, Array]]


class _Pursuit:
    """The rounds so far, and the best model among them."""

    def __init__(
        self,
        model: Pursued,
        num_inducing: int,
        max_candidates: int,
        steps: int,
        least_gain: float,
        validation_data: RegressionData | None,
        started: float,
    ) -> None:
        self._model, self._max_candidates, self._started = model, max_candidates, started
        self._steps = steps if model.trainable_parameters else 0
        self._least_gain = least_gain
        found, rows = dictionary_of(model), some_rows(model)
        self._validation_data = _checked_rows(validation_data, rows.shape[1], model.num_latent_gps)
        self._dictionary = found.arranged(rows)
        self._replace(self._dictionary.atoms)
        self._pool = self._dictionary.likeliest(rows, max(max_candidates, num_inducing))
        self.rounds = [self._round(0)]
        self.best = 0
        self._best = self._state()

    @property
    def best_atoms(self) -> IntArray:
        """Of the best model."""
        return self._best.atoms

    def _state(self) -> _State:
        model = self._model
        variables = [parameter.unconstrained_variable for parameter in model.trainable_parameters]
        values = [(variable, variable.numpy()) for variable in variables]
        return _State(self._atoms, (model.inducing_variable, model.kernel), values)

    @property
    def size(self) -> int:
        """The number M of features now."""
        return int(self._model.inducing_variable.num_inducing)

    def run(self, num_inducing: int, growth: float, least_share: float, bar: Any) -> str:
        """Why it ended."""
        while self.size < num_inducing:
            before = self.size
            wanted = min(max(int(round(before * growth)), before + 1), num_inducing)
            num_candidates, ended = self._grow(wanted - before, num_inducing - before)
            if ended is not None:
                return ended
            if not self._end_round(before, num_candidates, bar):
                return "elbo" if self.rounds[-1].held_out is None else "held_out"
            if self.size - before < least_share * (wanted - before):
                return "few"
        return "num_inducing"

    def fill(self, num_inducing: int, bar: Any) -> None:
        """Take those of most prior variance, up to so many features."""
        before, own = self.size, set(map(tuple, self._atoms.tolist()))
        pool = [atom for atom in map(tuple, self._pool.tolist()) if atom not in own]
        rest = np.array(pool, np.int64).reshape([len(pool), self._atoms.shape[1]])
        if pool:
            rest = rest[np.cumsum(self._sizes(rest)) <= num_inducing - before]
        if len(rest):
            self._replace(np.concatenate([self._atoms, rest]))
            self._end_round(before, 0, bar, only_held_out=True)

    def _end_round(
        self, before: int, num_candidates: int, bar: Any, *, only_held_out: bool = False
    ) -> bool:
        """Whether the model is the best so far; if not, it is the best again.

        :param only_held_out: Compare nothing but the log density of rows held out, if any.
        """
        bar.update(self.size - before)
        if self._steps:
            with operation_by_operation():
                fit_quietly(self._model, steps=self._steps, progress=False)
        self.rounds.append(self._round(num_candidates))
        bar.set_postfix_str(_text(self.rounds[-1]))
        if not (only_held_out and self._validation_data is None or self._better()):
            self._model.inducing_variable, self._model.kernel = self._best.block
            self._atoms = self._best.atoms
            for variable, value in self._best.values:
                variable.assign(value)
            return False
        self.best = len(self.rounds) - 1
        self._best = self._state()
        return True

    def _replace(self, atoms: IntArray) -> None:
        self._atoms = atoms
        self._model.inducing_variable, self._model.kernel = self._dictionary.block(atoms)

    def _round(self, num_candidates: int) -> PursuitRound:
        model, held_out = self._model, None
        elbo = float(model.elbo())
        if self._validation_data is not None:
            densities = model.predict_log_density(self._validation_data)
            held_out = float(np.mean(densities.numpy()))
        return PursuitRound(
            self.size, num_candidates, elbo, held_out, time.perf_counter() - self._started
        )

    def _better(self) -> bool:
        last, best = self.rounds[-1], self.rounds[self.best]
        if last.held_out is not None and best.held_out is not None:
            return last.held_out > best.held_out
        return last.elbo > best.elbo

    def _grow(self, count: int, room: int) -> tuple[int, str | None]:
        """Add the best candidates, of about so many features, for which there is room.

        :return: The number of features there were to choose from, and why there is none to add.
        """
        candidates, dictionary = self._candidates(), self._dictionary
        if not len(candidates):
            return 0, "candidates"
        sizes = self._sizes(candidates)
        candidates, sizes = candidates[sizes <= room], sizes[sizes <= room]
        if not len(candidates):
            return 0, "num_inducing"
        count = max(count, int(np.max(sizes)))  # an atom is taken as a whole
        residuals = self._model.residuals()
        owners = dictionary.owners(candidates, alone=True)
        sums = residuals.screen(dictionary.block(candidates, alone=True))
        means = np.bincount(owners, sums.gains(dictionary.charged(candidates))) / sizes
        order = np.lexsort([np.arange(len(means)), -means])
        most = max(_SHORTLIST * count, _LEAST_SHORTLIST)
        shortlist = candidates[np.sort(order[np.cumsum(sizes[order]) <= most])]
        compared = residuals.compare(dictionary.block(shortlist, alone=True))
        taken = compared.best(
            dictionary.owners(shortlist, alone=True),
            count,
            dictionary.charged(shortlist),
            self._least_gain,
        )
        if not taken:
            return len(owners), "elbo"
        self._replace(np.concatenate([self._atoms, shortlist[taken]]))
        return len(owners), None

    def _sizes(self, atoms: IntArray) -> IntArray:
        """How many features each of some atoms has, ``[A]``."""
        return np.bincount(self._dictionary.owners(atoms, alone=True), minlength=len(atoms))

    def _candidates(self) -> IntArray:
        around = self._dictionary.neighbours(self._by_weight(), self._max_candidates)
        own = set(map(tuple, self._atoms.tolist()))
        found = dict.fromkeys(map(tuple, np.concatenate([self._pool, around]).tolist()))
        rows = [atom for atom in found if atom not in own]
        return np.array(rows, np.int64).reshape([len(rows), self._atoms.shape[1]])

    def _by_weight(self) -> IntArray:
        """The atoms, those of largest posterior mean first."""
        energies = np.sum(np.square(self._model.whitened_mean().numpy()), axis=1)
        owners = self._dictionary.owners(self._atoms)
        of_atom = owners >= 0
        own = np.bincount(owners[of_atom], energies[of_atom], minlength=len(self._atoms))
        order: IntArray = np.lexsort([np.arange(len(own)), -own])
        return self._atoms[order]


def some_rows(model: Pursued) -> Array:
    """Inputs drawn from the rows of all workers, to average prior variances over."""
    X, _ = model.draw(_POOL_ROWS)
    return X


def _checked_rows(
    data: RegressionData | None, num_columns: int, num_outputs: int
) -> RegressionData | None:
    if data is None:
        return None
    X, Y = pair_of_matrices("validation_data", data)
    for name, matrix, count in (("X", X, num_columns), ("Y", Y, num_outputs)):
        if matrix.shape[1] != count:
            raise ValueError(
                f"validation_data: {name} must have the model's {count} columns, found "
                f"{matrix.shape[1]}; pass rows of the same kind."
            )
    return X, Y


def dictionary_of(model: Pursued) -> Dictionary:
    """The dictionary of a model's features.

    :raises ValueError: If they belong to no dictionary.
    """
    found: Dictionary | None = dictionary(model.inducing_variable, model.kernel)
    if found is None:
        raise ValueError(
            "model.inducing_variable must be made of features of an orthogonal dictionary, found "
            f"{type(model.inducing_variable).__name__} with {type(model.kernel).__name__}; pass a "
            "model with SphericalHarmonics or PeriodicFourierFeatures, or products of them."
        )
    return found


def _text(one: PursuitRound) -> str:
    if one.held_out is None:
        return f"bound {one.elbo:.1f}"
    return f"held out {one.held_out:.4f}"
