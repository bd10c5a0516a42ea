"""The arguments of a fit: checked one by one and together, with the defaults filled in."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import tensorflow as tf

from .._arguments import boolean, filled_matrix, integer, number
from ..sphere._typing import Array
from .progress import Callback
from .settings import Method, resolve_method
from .step_sizes import NaturalGradient

_DEFAULT_CHECKPOINT_EVERY = 100


@dataclass(frozen=True, eq=False)
class FitArguments:
    """
    The arguments of :func:`interdomain.training.fit` other than the model and the data; they are
    documented there.

    They are kept as passed; :meth:`checked` returns them checked, with the defaults filled in.
    """

    method: Method | None
    steps: int
    max_seconds: float | None
    batch_size: int | None
    seed: int
    optimizer: Any
    learning_rate: float | None
    natural_gradient: NaturalGradient
    alternate: bool
    options: Mapping[str, Any] | None
    callbacks: Sequence[Callback]
    callback_every: int
    checkpoint_dir: str | os.PathLike[str] | None
    checkpoint_every: int | None
    resume: bool
    progress: bool
    jit_compile: bool
    strategy: tf.distribute.Strategy | None

    @property
    def full_batch(self) -> bool:
        """Whether the method needs all of the data at once."""
        return self.method == "l-bfgs"

    def checked(self, data: Any) -> FitArguments:
        """
        The same arguments with the method chosen and ``checkpoint_every`` filled in.

        :param data: as passed to the fit; whether it is a Dataset decides on the method.
        :raises ValueError: if an argument is wrong, or two of them exclude each other.
        """
        self._check_each()
        checkpoint_every, given = self.checkpoint_every, self.natural_gradient
        if self.checkpoint_dir is not None and checkpoint_every is None:
            checkpoint_every = _DEFAULT_CHECKPOINT_EVERY
        method = resolve_method(
            self.method,
            minibatches=self.batch_size is not None or isinstance(data, tf.data.Dataset),
            batch_size=self.batch_size,
            gradient_arguments={
                "optimizer": self.optimizer,
                "learning_rate": self.learning_rate,
                "natural_gradient": None if given is False else given,
            },
            options=self.options,
        )
        if self.strategy is not None:
            self._check_strategy(method)
        return dataclasses.replace(self, method=method, checkpoint_every=checkpoint_every)

    def _check_each(self) -> None:
        integer("steps", self.steps, at_least=1)
        integer("callback_every", self.callback_every, at_least=1)
        if self.checkpoint_every is not None:
            integer("checkpoint_every", self.checkpoint_every, at_least=1)
        if self.max_seconds is not None:
            number("max_seconds", self.max_seconds, above=0)
        integer("seed", self.seed, at_least=0)
        for name in ("resume", "progress", "jit_compile", "alternate"):
            boolean(name, getattr(self, name))
        if self.alternate and self.natural_gradient is False:
            raise ValueError(
                "alternate: it says when the other parameters move after natural gradients, found "
                "natural_gradient=False; leave it out, or pass natural_gradient=True."
            )
        if self.checkpoint_dir is None and (self.checkpoint_every is not None or self.resume):
            raise ValueError(
                f"checkpoint_dir: found None with checkpoint_every={self.checkpoint_every} and "
                f"resume={self.resume}; pass the directory for the checkpoints."
            )

    def _check_strategy(self, method: Method) -> None:
        if method == "l-bfgs":
            raise ValueError(
                "strategy: L-BFGS runs on one device, found a "
                f"{type(self.strategy).__name__}; pass method='adam', or leave strategy out."
            )
        if self.jit_compile:
            raise ValueError(
                "jit_compile: XLA cannot compile a step that is spread over replicas; leave it out "
                "with a strategy."
            )


def pair_of_matrices(name: str, data: Any) -> tuple[Array, Array]:
    """
    Rows that are held in memory, in ``gpflow.default_float()``.

    :param data: (X ``[n, D]``, Y ``[n, P]``); NaN in Y may stand for a value that is missing, which
        is for the models to say.
    :raises ValueError: unless they are two matrices of finite numbers with as many rows.
    """
    if not (isinstance(data, (tuple, list)) and len(data) == 2):
        raise ValueError(
            f"{name} must be a pair of matrices (X, Y), found {type(data).__name__}; pass two "
            "arrays."
        )
    X = filled_matrix(f"{name}: X", data[0], "a matrix [n, D]")
    Y = filled_matrix(f"{name}: Y", data[1], "a matrix [n, P]", missing=True)
    if len(X) != len(Y):
        raise ValueError(
            f"{name} must have one row of Y for each of X, found {len(Y)} for {len(X)}; pass pairs."
        )
    dtype = gpflow.default_float()
    return X.astype(dtype), Y.astype(dtype)
