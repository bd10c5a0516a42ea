"""Features chosen for a model: input scales and the set of features, in turn, on some rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..covariances.dictionaries import Dictionary
from ..models import StructuredSGPR
from ..sphere._typing import Array, IntArray
from ..streaming.archives import FORMAT, read_archive, write_archive
from .loop import fit
from .pursuit import Pursuit, arranged_dictionary, matching_pursuit

_ROWS = 20_000
"""Rows to choose features by, at most, those held out included."""

_MOST_HELD_OUT = 2_000

_BEGINNING = 50
"""Features that a pursuit begins with: those of most prior variance."""

_BEGINNING_ROWS = 2_000

_TURN_SIZE = 256
"""Features that scales are trained with, at most: every step computes them again."""

_TURN_STEPS = 25

_TURN_CANDIDATES = 2_000

_NOTABLE_RISE = 0.005
"""Of the log density of rows held out: turns that bring less are the last."""


@dataclass(frozen=True)
class Choice:
    """
    How :func:`fit_sgpr` chose features, on some rows drawn at random.

    :ivar turns: the mean log density of rows held out: of the model as it was given, its parameters
        trained, then after each turn of choosing few features and training all parameters with
        them. The best one counts.
    :ivar pursuit: how the features were chosen then, with the input scales of that turn; None if
        they were read from a checkpoint.
    :ivar seconds: the seconds for everything.
    """

    turns: tuple[float, ...]
    pursuit: Pursuit | None
    seconds: float

    def __str__(self) -> str:
        turns = ", ".join(f"{density:.4f}" for density in self.turns)
        return f"held out, by turns of features and scales: {turns}\n{self.pursuit or ''}".rstrip()


def choose_features(
    model: StructuredSGPR,
    num_inducing: int,
    *,
    subset_size: int,
    subset_steps: int,
    max_turns: int,
    seed: int,
    options: Mapping[str, Any] | None,
    path: str | os.PathLike[str] | None,
    resume: bool,
    progress: bool,
) -> tuple[Choice, tuple[str, ...]]:
    """
    Train the input scales, and replace the model's features by chosen ones.

    :param model: with few features to begin with, of an orthogonal dictionary.
    :param path: a file that keeps what was found.
    :return: what was done, and the names of the feature parameters that are now frozen.
    :raises ValueError: for features of no dictionary, or a model without its rows.
    """
    return _Choosing(model, num_inducing, seed, options, progress).run(
        subset_size, subset_steps, max_turns, path, resume
    )


class _Choosing:
    def __init__(
        self,
        model: StructuredSGPR,
        num_inducing: int,
        seed: int,
        options: Mapping[str, Any] | None,
        progress: bool,
    ) -> None:
        self._started = time.perf_counter()
        self._model, self._num_inducing = model, num_inducing
        self._arguments: dict[str, Any] = {"options": options, "progress": progress}
        self._start = model.inducing_variable, model.kernel
        X, Y = model.draw(_ROWS, seed=seed)
        self._all_rows = X, Y
        order = np.random.default_rng(seed).permutation(len(X))
        held_out = min(len(X) // 6, _MOST_HELD_OUT)
        self._held_out = X[order[:held_out]], Y[order[:held_out]]
        self._rows = X[order[held_out:]], Y[order[held_out:]]

    def run(
        self,
        subset_size: int,
        subset_steps: int,
        max_turns: int,
        path: str | os.PathLike[str] | None,
        resume: bool,
    ) -> tuple[Choice, tuple[str, ...]]:
        kept = read_archive(path) if resume and path is not None and Path(path).exists() else None
        if kept is None:
            turns = self._train_scales(subset_size, subset_steps, max_turns)
        else:
            turns = tuple(kept["turns"].tolist())
            _assign(_variables(self._model), _numbered(kept))
        frozen = tuple(n for n, p in self._model.feature_parameters.items() if p.trainable)
        for parameter in self._model.feature_parameters.values():
            gpflow.set_trainable(parameter, False)
        rows = self._model.model_of(self._all_rows)
        dictionary, pursuit = _begin(rows, self._num_inducing), None
        if kept is None:
            pursuit = matching_pursuit(
                rows, self._num_inducing, progress=self._arguments["progress"]
            )
            atoms = self._of_chief(pursuit.atoms)
            if path is not None and self._model.workers.is_chief:
                write_archive(path, self._to_keep(turns, atoms))
        else:
            atoms = kept["atoms"].astype(np.int64)
        self._model.inducing_variable, self._model.kernel = dictionary.block(atoms)
        seconds = time.perf_counter() - self._started
        return Choice(turns, pursuit, seconds), frozen

    def _train_scales(
        self, subset_size: int, subset_steps: int, max_turns: int
    ) -> tuple[float, ...]:
        """The log densities of rows held out, turn by turn; the best parameters are kept."""
        X, Y = (array[:subset_size] for array in self._rows)
        subset = self._model.model_of((X, Y))
        variables = _variables(self._model)
        fit(subset, method="l-bfgs", steps=subset_steps, **self._arguments)
        turns, best = [self._density(subset)], [v.numpy() for v in variables]
        for _ in range(max_turns):
            subset.inducing_variable, subset.kernel = self._start
            _begin(subset, self._num_inducing)
            matching_pursuit(
                subset,
                min(self._num_inducing, _TURN_SIZE),
                growth=2.0,
                steps=_TURN_STEPS // 5,
                max_candidates=_TURN_CANDIDATES,
                progress=self._arguments["progress"],
            )
            fit(subset, method="l-bfgs", steps=_TURN_STEPS, **self._arguments)
            highest = max(turns)
            turns.append(self._density(subset))
            if turns[-1] > highest:
                best = [v.numpy() for v in variables]
            if turns[-1] < highest + _NOTABLE_RISE:
                break
        _assign(variables, best)
        self._model.broadcast_parameters()
        return tuple(turns)

    def _density(self, model: StructuredSGPR) -> float:
        return float(np.mean(model.predict_log_density(self._held_out).numpy()))

    def _of_chief(self, atoms: IntArray) -> IntArray:
        """The atoms that the chief has chosen: other processors may round differently."""
        shared = list(self._model.workers.share(lambda: {"atoms": atoms.astype(np.float64)}))
        return shared[0]["atoms"].astype(np.int64)

    def _to_keep(self, turns: Sequence[float], atoms: IntArray) -> dict[str, Array]:
        values = {f"value_{k}": v.numpy() for k, v in enumerate(_variables(self._model))}
        header = np.array(json.dumps({"format": FORMAT}))
        return {
            "header": header,
            "turns": np.array(turns),
            "atoms": atoms.astype(np.float64),
            **values,
        }


def _begin(model: StructuredSGPR, num_inducing: int) -> Dictionary:
    """Give the model the few features of most prior variance, at most so many."""
    dictionary = arranged_dictionary(model)
    X, _ = model.draw(_BEGINNING_ROWS)
    few = dictionary.likeliest(X, min(_BEGINNING, num_inducing))
    model.inducing_variable, model.kernel = dictionary.block(few)
    return dictionary


def _variables(model: StructuredSGPR) -> list[tf.Variable]:
    return [parameter.unconstrained_variable for parameter in model.parameters]


def _assign(variables: Sequence[tf.Variable], values: Sequence[Array]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def _numbered(kept: Mapping[str, Array]) -> list[Array]:
    count = sum(name.startswith("value_") for name in kept)
    return [kept[f"value_{k}"] for k in range(count)]
