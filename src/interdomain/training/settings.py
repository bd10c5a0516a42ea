"""The method of a fit, the variables that it updates, and the optimizer."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.keras import tf_keras

from .._arguments import number
from .compiled import CompiledFunctions
from .natural_gradients import NaturalGradients

Method: TypeAlias = Literal["l-bfgs", "adam"]

_DEFAULT_LEARNING_RATE = 0.01


def resolve_method(
    method: Method | None,
    *,
    minibatches: bool,
    batch_size: int | None,
    gradient_arguments: Mapping[str, Any],
    options: Mapping[str, Any] | None,
) -> Method:
    """
    The method that was passed, or the one that the other arguments imply.

    :param minibatches: whether the data come in batches.
    :param gradient_arguments: the arguments that L-BFGS does not use, by name; None if not passed.
    :raises ValueError: if the method is unknown, or an argument belongs to the other method.
    """
    given = {name: value for name, value in gradient_arguments.items() if value is not None}
    if method is None:
        method = "adam" if minibatches or given else "l-bfgs"
    if method not in ("l-bfgs", "adam"):
        raise ValueError(f"method: found {method!r}; pass 'l-bfgs' or 'adam'.")
    if method == "adam":
        if options is not None:
            raise ValueError(
                f"options: they are for SciPy's L-BFGS, found {dict(options)} with "
                "method='adam'; leave them out, or pass a configured optimizer."
            )
        return method
    if batch_size is not None:
        raise ValueError(
            f"batch_size: L-BFGS needs the exact loss on all of the data, found {batch_size} with "
            "method='l-bfgs'; leave batch_size out, or pass method='adam'."
        )
    for name, value in given.items():
        raise ValueError(
            f"{name}: L-BFGS has no use for it, found {value!r} with method='l-bfgs'; leave it "
            "out, or pass method='adam'."
        )
    if options is not None and "maxiter" in options:
        raise ValueError(
            f"options: found maxiter={options['maxiter']}; pass the number of iterations as steps."
        )
    return method


@dataclass(frozen=True)
class Updates:
    """
    The variables that a fit updates, and how.

    :ivar variables: the variables that the optimizer (or L-BFGS) updates: all trainable ones, but
        with natural gradients those outside of q only.
    :ivar optimizer: built on ``variables``; None for L-BFGS, or if there are no variables.
    :ivar natural: the natural gradients for q; None without.
    """

    variables: Sequence[tf.Variable]
    optimizer: Any = None
    natural: NaturalGradients | None = None

    def q_variables(self) -> list[tf.Variable]:
        """The variables that natural gradients update."""
        return [] if self.natural is None else self.natural.variables

    def all_variables(self) -> list[tf.Variable]:
        """All variables that a step updates."""
        return [*self.variables, *self.q_variables()]

    def key(self) -> tuple[Hashable, ...]:
        """What a compiled step depends on; the sizes of natural-gradient steps are given to it."""
        return self.optimizer, None if self.natural is None else self.natural.alternate

    def stored(self) -> dict[str, Any]:
        """Objects, by name, that a checkpoint must hold in addition to the model and the data."""
        return {} if self.optimizer is None else {"optimizer": self.optimizer}

    def describe(self) -> dict[str, Any]:
        """What must be the same for a resumed fit, as plain JSON data."""
        if self.optimizer is None:
            optimizer = None
        else:
            optimizer = {"class": type(self.optimizer).__name__, **self.optimizer.get_config()}
            optimizer.pop("name", None)  # Keras 3 numbers its instances
        settings = {"optimizer": optimizer, "natural_gradient": None}
        if self.natural is not None:
            settings |= self.natural.describe()
        described: dict[str, Any] = json.loads(json.dumps(settings, default=_plain))
        return described


def lbfgs_updates(model: Any) -> Updates:
    """What L-BFGS updates: all trainable variables."""
    return Updates(_require_some(model, model.trainable_variables))


def gradient_updates(
    model: Any,
    *,
    optimizer: Any,
    learning_rate: float | None,
    natural: NaturalGradients | None,
) -> Updates:
    """What an optimizer (Adam by default) updates, beside natural gradients for q if there are any.

    All fits of a model use the same Adam, so that its steps are compiled once; its state is reset
    at the beginning of each fit.
    """
    if learning_rate is not None and optimizer is not None:
        raise ValueError(
            f"learning_rate: found {learning_rate} beside an optimizer, which has its own; leave "
            "one of them out."
        )
    if learning_rate is not None:
        number("learning_rate", learning_rate, above=0)
    in_q = set() if natural is None else {id(variable) for variable in natural.variables}
    variables = tuple(v for v in model.trainable_variables if id(v) not in in_q)
    if not in_q:
        _require_some(model, variables)
    if optimizer is not None:
        _check_optimizer(optimizer)
    if not variables:
        return Updates((), None, natural)
    if optimizer is None:
        rate = _DEFAULT_LEARNING_RATE if learning_rate is None else learning_rate
        key = ("adam", *(v.ref() for v in variables))
        optimizer = CompiledFunctions.of(model).get(key, tf_keras.optimizers.Adam)
        optimizer.build(list(variables))
        for variable in optimizer.variables:
            variable.assign(tf.zeros_like(variable))
        optimizer.learning_rate = rate
    else:
        # Creates its variables: tf.function must not, and a checkpoint restores them.
        optimizer.build(list(variables))
    return Updates(variables, optimizer, natural)


def _check_optimizer(optimizer: Any) -> None:
    methods = ("build", "apply_gradients", "get_config")
    if isinstance(optimizer, gpflow.optimizers.NaturalGradient):
        raise ValueError(
            "optimizer: found a NaturalGradient; pass natural_gradient=gamma instead, and an "
            "optimizer for the other parameters."
        )
    if not all(hasattr(optimizer, method) for method in methods):
        raise ValueError(
            f"optimizer: found {optimizer!r}; pass an instance of a tf_keras or Keras 3 optimizer, "
            "such as gpflow.keras.tf_keras.optimizers.Adam(0.01)."
        )


def _require_some(model: Any, variables: Sequence[tf.Variable]) -> Sequence[tf.Variable]:
    if not variables:
        raise ValueError(
            f"model: this {type(model).__name__} has no trainable variables; call "
            "gpflow.set_trainable(parameter, True) on those to train."
        )
    return tuple(variables)


def _plain(value: Any) -> Any:
    """Numbers of NumPy and TensorFlow as Python's; for other objects, the name of the type."""
    if isinstance(value, (np.generic, np.ndarray, tf.Tensor, tf.Variable)):
        return np.asarray(value).tolist()
    return type(value).__name__
