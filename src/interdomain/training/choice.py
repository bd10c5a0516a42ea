"""Chooses features for a model: trains input scales and chooses features in turn, on some rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from ..covariances.dictionaries import Dictionary
from ..covariances.pairs import Block
from ..models.rows_model import RowsModel
from ..sphere._typing import Array, IntArray
from ..streaming.archives import FORMAT, read_archive, write_archive
from .pursuit import (
    LEAST_GAIN,
    MOST_CANDIDATES,
    Pursued,
    Pursuit,
    dictionary_of,
    pursue,
    some_rows,
)

_ROWS = 20_000
"""Rows to choose features by, at most, those held out included."""

_MOST_HELD_OUT = 2_000

_BEGINNING = 50
"""Features that a pursuit begins with: those of most prior variance; half of all, if these are few,
so that the data choose the others."""

_TURN_SIZE = 256
"""Features that scales are trained with, at most: every step computes them again."""

_TURN_STEPS = 25

_TURN_CANDIDATES = 2_000

_CANDIDATES_EACH = 10
"""Candidates for each feature wanted: of more, more fit the noise."""

_LEAST_SHARE = 0.15
"""Of the features wanted in a round of the final choice. Between turns every round counts: it
trains the input scales."""

_NO_GAIN_IS_ENOUGH = 1e12

_NOTABLE_LOSS = 0.02
"""Of the log density of rows held out: if chosen features lose more, there are too few rows to
choose by."""

_NOTABLE_RISE = 0.005
"""Of the log density of rows held out: turns that bring less are the last."""


@dataclass(frozen=True)
class Choice:
    """
    How :func:`fit_sgpr` or :func:`fit_collapsed` chose features, on some rows drawn at random.

    :ivar turns: the mean log density of held-out rows. The first number is that of the given model
        with its parameters trained; each further number is that after one more turn of choosing a
        few features and training all parameters with them. The turn with the highest number is
        used; the first turn is used also if it is up to 0.02 below the model that it started from.
    :ivar pursuit: how the final features were chosen, with the input scales of the turn that is
        used; None if they were read from a checkpoint.
    :ivar seconds: the seconds for everything.
    """

    turns: tuple[float, ...]
    pursuit: Pursuit | None
    seconds: float

    def __str__(self) -> str:
        turns = ", ".join(f"{density:.4f}" for density in self.turns)
        return f"held out, by turns of features and scales: {turns}\n{self.pursuit or ''}".rstrip()


T = TypeVar("T", bound=Pursued)


@dataclass(frozen=True)
class Trials(Generic[T]):
    """How models of some rows are made and trained, to choose features with.

    :ivar make: makes a model of rows (X, Y) that shares its parameters with the model of all rows.
    :ivar train: trains all parameters of such a model for a number of steps.
    :ivar growth: the factor by which the number of features grows in a round of the final choice.
    :ivar between: whether parameters are trained between the rounds of a pursuit.
    """

    make: Callable[[tuple[Array, Array]], T]
    train: Callable[[T, int], None]
    growth: float = 1.5
    between: bool = True


def choose_features(
    model: RowsModel,
    num_inducing: int,
    trials: Trials[T],
    *,
    subset_size: int,
    subset_steps: int,
    max_turns: int,
    seed: int,
    path: str | os.PathLike[str] | None,
    resume: bool,
    progress: bool,
) -> tuple[Choice, tuple[str, ...], T | None]:
    """
    Train the input scales, and replace the model's features by chosen ones.

    :param model: a model with a few features of an orthogonal dictionary to start from.
    :param path: a file in which the result is kept.
    :return: what was done; the names of the feature parameters that are now frozen; and the model
        of some rows that has the chosen features, None if they were read from a checkpoint or come
        from another worker.
    :raises ValueError: for features that belong to no dictionary, or a model without its rows.
    """
    return _Choosing(model, num_inducing, trials, seed, progress).run(
        subset_size, subset_steps, max_turns, path, resume
    )


_KINDS = ("before", "value")
"""What is kept of parameters: their values before the best turn, which arrange the dictionary (the
order of columns), and the last ones."""


class _Turn(NamedTuple):
    """What a turn arrived at: features, their dictionary, and parameters before and after it.

    ``densities`` are those of all turns.
    """

    dictionary: Dictionary
    block: Block
    before: list[Array]
    values: list[Array]
    densities: list[float]


class _Choosing(Generic[T]):
    def __init__(
        self,
        model: RowsModel,
        num_inducing: int,
        trials: Trials[T],
        seed: int,
        progress: bool,
    ) -> None:
        self._started = time.perf_counter()
        self._model, self._num_inducing = model, num_inducing
        self._trials, self._progress = trials, progress
        dictionary_of(model)  # refused before anything is trained
        self._start = model.inducing_variable, model.kernel
        X, Y = model.draw(_ROWS, seed=seed)
        self._all_rows = X, Y
        order = np.random.default_rng(seed).permutation(len(X))
        held_out = min(len(X) // 6, _MOST_HELD_OUT)
        self._rows = X[order[held_out:]], Y[order[held_out:]]
        # Of fewer than six rows none can be spared.
        few = order[:held_out] if held_out else order
        self._held_out = X[few], Y[few]

    def run(
        self,
        subset_size: int,
        subset_steps: int,
        max_turns: int,
        path: str | os.PathLike[str] | None,
        resume: bool,
    ) -> tuple[Choice, tuple[str, ...], T | None]:
        kept = self._kept(path, resume)
        X, Y = self._rows
        subset = self._trials.make((X[:subset_size], Y[:subset_size]))
        variables = _variables(self._model)
        if kept is None:
            best = self._train_scales(subset, subset_steps, max_turns)
        else:
            before, values = (
                [kept[name] for name in _names(kind, len(variables))] for kind in _KINDS
            )
            _assign(variables, before)
            dictionary, densities = self._begin(subset), kept["turns"].tolist()
            best = _Turn(dictionary, _block(subset), before, values, densities)
        _assign(variables, best.values)
        self._model.broadcast_parameters()
        frozen = tuple(n for n, p in self._model.feature_parameters.items() if p.trainable)
        for parameter in self._model.feature_parameters.values():
            gpflow.set_trainable(parameter, False)
        pursuit, rows = None, None
        if kept is None:
            rows = self._trials.make(self._all_rows)
            rows.inducing_variable, rows.kernel = best.block
            pursuit = pursue(
                rows,
                self._num_inducing,
                growth=self._trials.growth,
                least_share=_LEAST_SHARE,
                max_candidates=min(MOST_CANDIDATES, _CANDIDATES_EACH * self._num_inducing),
                least_gain=_NO_GAIN_IS_ENOUGH if _hurts(best.densities) else LEAST_GAIN,
                progress=self._progress,
                **self._between(),
            )
            self._model.broadcast_parameters()
            atoms = self._of_chief(lambda: {"atoms": pursuit.atoms})["atoms"]
            if path is not None and self._model.workers.is_chief:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                write_archive(path, self._to_keep(best, atoms))
        else:
            atoms = kept["atoms"]
        block = best.dictionary.block(atoms)
        if rows is not None and not _same(block, _block(rows), self._all_rows[0][:2]):
            rows = None
        self._model.inducing_variable, self._model.kernel = block
        seconds = time.perf_counter() - self._started
        return Choice(tuple(best.densities), pursuit, seconds), frozen, rows

    def _between(self, **arguments: Any) -> dict[str, Any]:
        """Arguments of a pursuit: whether, and how, parameters are trained between its rounds."""
        return arguments if self._trials.between else {"steps": 0}

    def _train_scales(self, subset: T, subset_steps: int, max_turns: int) -> _Turn:
        """Turn by turn; the best one by the log density of rows held out."""
        variables = _variables(self._model)

        def values() -> list[Array]:
            return [variable.numpy() for variable in variables]

        self._trials.train(subset, subset_steps)
        densities = [self._density(subset)]
        first = values()
        best = _Turn(self._begin(subset), _block(subset), first, first, densities)
        for _ in range(max_turns):
            before, dictionary = values(), self._begin(subset)
            size = int(subset.inducing_variable.num_inducing)
            pursue(
                subset,
                max(min(self._num_inducing, _TURN_SIZE), size),
                growth=2.0,
                max_candidates=min(_TURN_CANDIDATES, _CANDIDATES_EACH * self._num_inducing),
                fill=False,
                progress=self._progress,
                **self._between(steps=_TURN_STEPS // 5),
            )
            self._trials.train(subset, _TURN_STEPS)
            highest = max(densities)
            densities.append(self._density(subset))
            if densities[-1] > highest - (_NOTABLE_LOSS if len(densities) == 2 else 0):
                best = _Turn(dictionary, _block(subset), before, values(), densities)
            if densities[-1] < highest + _NOTABLE_RISE:
                break
        return best

    def _begin(self, subset: T) -> Dictionary:
        """Give the subset's model the few features of most prior variance."""
        subset.inducing_variable, subset.kernel = self._start
        return _begin(subset, self._num_inducing)

    def _density(self, model: Pursued) -> float:
        return float(np.mean(np.asarray(model.predict_log_density(self._held_out))))

    def _of_chief(self, arrays: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the chief has found: other processors may round differently, or not see its file."""
        workers = self._model.workers
        with workers.losses_named("the exchange of chosen features"):
            chief, *_ = workers.share(lambda: arrays() if workers.is_chief else {})
        return chief

    def _kept(self, path: str | os.PathLike[str] | None, resume: bool) -> dict[str, Any] | None:
        """What a run that was interrupted has found; None if there is nothing.

        :raises ValueError: If the file is of another model, cannot be read, or is not to be read.
        """

        def read() -> dict[str, Any]:
            if path is None or not Path(path).exists():
                return {}
            if not resume:
                raise ValueError(
                    f"checkpoint_dir: {os.fspath(path)} holds chosen features already; pass "
                    "resume=True to go on from these, or another folder."
                )
            return self._read(path)

        return self._of_chief(read) or None

    def _read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        where = f"checkpoint_dir: {os.fspath(path)}"
        remedy = "remove that file to choose features again, or pass another folder"
        try:
            kept = read_archive(path)
            found = json.loads(str(kept["header"]))
            of_choice = {"turns", "atoms"} <= set(kept)
        except ValueError:
            of_choice = False
        if not of_choice:
            raise ValueError(f"{where} is no file of chosen features; {remedy}.")
        for name, wanted in self._header().items():
            if found.get(name) != wanted:
                raise ValueError(
                    f"{where} was written for another model or other arguments: {name} is "
                    f"{found.get(name)} there, and {wanted} here; {remedy}."
                )
        return kept

    def _header(self) -> dict[str, Any]:
        """What features that were chosen belong to."""
        parts = (self._model.kernel, self._model.inducing_variable)
        kinds = [
            type(module).__name__
            for part in parts
            for module in (part, *part.submodules)
            if isinstance(module, (Kernel, InducingVariables))
        ]
        X, Y = self._all_rows
        parameters = gpflow.utilities.parameter_dict(self._model)
        return {
            "format": FORMAT,
            "num_inducing": self._num_inducing,
            "columns": [X.shape[1], Y.shape[1]],
            "kinds": kinds,
            "parameters": {
                path: list(p.shape)
                for path, p in parameters.items()
                if isinstance(p, gpflow.Parameter)  # a model's sums are no part of it
            },
        }

    def _to_keep(self, best: _Turn, atoms: IntArray) -> dict[str, Any]:
        present = [variable.numpy() for variable in _variables(self._model)]
        values: dict[str, Array] = {}
        for kind, arrays in zip(_KINDS, (best.before, present), strict=True):
            values.update(zip(_names(kind, len(arrays)), arrays, strict=True))
        return {
            "header": np.array(json.dumps(self._header())),
            "turns": np.array(best.densities),
            "atoms": atoms,
            **values,
        }


def _begin(model: Pursued, num_inducing: int) -> Dictionary:
    """Give the model the few features of most prior variance.

    :raises ValueError: If ``num_inducing`` is too few for those that stay, and one of each family.
    """
    X = some_rows(model)
    dictionary = dictionary_of(model).arranged(X)
    atoms = dictionary.likeliest(X, min(_BEGINNING, -(-num_inducing // 2)))
    owners = dictionary.owners(atoms)
    sizes = np.bincount(owners[owners >= 0], minlength=len(atoms))
    room = num_inducing - int(np.count_nonzero(owners < 0))
    within = np.cumsum(sizes) <= room
    within[0] = True
    model.inducing_variable, model.kernel = dictionary.block(atoms[within])
    size = int(model.inducing_variable.num_inducing)
    if size > num_inducing:
        raise ValueError(
            f"num_inducing must have room for features that stay and some of each family, found "
            f"{num_inducing}; pass {size} or more."
        )
    return dictionary


def _hurts(turns: Sequence[float]) -> bool:
    """Whether features that the data chose have been worse than those of most prior variance."""
    return len(turns) > 1 and max(turns[1:]) < turns[0] - _NOTABLE_LOSS


def _variables(model: RowsModel) -> list[tf.Variable]:
    return [parameter.unconstrained_variable for parameter in model.parameters]


def _assign(variables: Sequence[tf.Variable], values: Sequence[Array]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _block(model: Pursued) -> Block:
    return model.inducing_variable, model.kernel


def _same(block: Block, other: Block, X: Array) -> bool:
    """Whether the features are the same, in the same order."""
    rows = tf.constant(X, gpflow.default_float())
    return np.array_equal(Kuf(*block, rows), Kuf(*other, rows))


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}_{k}" for k in range(count)]
