"""Compiled functions of a model, which the model keeps and reuses until the model changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .descriptions import KEPT, attributes_of

_PLAIN = (bool, int, float, str, slice, np.generic)


class _Kept:
    """The objects that :func:`build_once` built, by name, with keys. Copies of it are empty."""

    def __init__(self, state: tuple[Any, ...] = ()) -> None:
        self.state, self.built = state, dict[str, tuple[Any, Any]]()

    def __reduce__(self) -> Any:
        return _Kept, ()


def build_once(model: tf.Module, name: str, key: Any, build: Callable[[], Any]) -> Any:
    """The object of this name for the present model and key, which ``build`` builds if necessary.
    The object must not refer to the model: it is freed with the model."""
    holder, state = vars(model).get(KEPT, _Kept()), _state(model)
    if len(holder.state) != len(state) or not all(
        a is b or (isinstance(a, _PLAIN) and type(a) is type(b) and a == b)
        for a, b in zip(holder.state, state, strict=True)
    ):
        holder = vars(model)[KEPT] = _Kept(state)
    if name not in holder.built or holder.built[name][0] != key:
        holder.built[name] = key, build()
    return holder.built[name][1]


class Values:
    """The values of all variables of a model, for a later comparison. They cost little memory:
    TensorFlow copies a buffer only when it is written to."""

    def __init__(self, model: tf.Module) -> None:
        self._values = [variable.read_value() for variable in model.variables]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Values) or len(self._values) != len(other._values):
            return False
        return all(map(np.array_equal, self._values, other._values))


def _state(model: tf.Module) -> tuple[Any, ...]:
    """The constants of a model's graphs: its modules, their attributes, and which parameters are
    trainable. Changes of arrays in place are not noticed."""
    parts: list[Any] = [gpflow.config.config()]
    for module in (model, *model.submodules):
        parts.append(module)
        if isinstance(module, gpflow.Parameter):
            parts += [module.trainable, module.prior, module.prior_on]
        elif not type(module).__module__.startswith("tensorflow"):
            parts += tf.nest.flatten(getattr(module, "_traced_state", tuple)())
            for name, value in attributes_of(module).items():
                container = isinstance(value, (tuple, list, dict))
                parts += [name, *(tf.nest.flatten(value) if container else [value])]
    return tuple(parts)
