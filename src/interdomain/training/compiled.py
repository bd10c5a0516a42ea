"""Compiled functions, kept with their model and used again as long as the model is the same."""

from __future__ import annotations

import enum
import functools
import types
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import gpflow
import numpy as np
import tensorflow as tf

Value = TypeVar("Value")

_ATTRIBUTE = "_compiled_by_interdomain"
_MOST = 8  # of kept functions: a fit needs two or three
_PLAIN = (type(None), bool, int, float, complex, str, bytes, enum.Enum, slice, range, np.generic)


class CompiledFunctions:
    """
    The functions compiled for one model, kept in an attribute of it. When the model is freed, they
    and their graphs are freed as well (:mod:`interdomain._graph_memory`).

    A graph contains Python values of the model as constants: ``num_data``, which parameters are
    trainable, which kernel it has. The functions are therefore kept with a description of the
    model, and dropped when the description changes. Copies and pickles of a model have none.
    """

    def __init__(self) -> None:
        self._description: list[Any] = []
        self._functions: OrderedDict[Hashable, Any] = OrderedDict()

    @classmethod
    def of(cls, model: tf.Module) -> CompiledFunctions:
        """The functions of a model in its present state."""
        functions: CompiledFunctions | None = vars(model).get(_ATTRIBUTE)
        if functions is None:
            functions = cls()
            setattr(model, _ATTRIBUTE, functions)
        description = _describe(model)
        if not _same(description, functions._description):
            functions._description = description
            functions._functions.clear()
        return functions

    def get(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The function for this key, built by ``build`` if there is none yet. If there are many
        functions, the one that was not used for longest is dropped.

        :param key: What the function depends on besides the model. Objects in it are compared by
            identity or equality, and are kept alive.
        """
        if key not in self._functions:
            self._functions[key] = build()
            if len(self._functions) > _MOST:
                self._functions.popitem(last=False)
        self._functions.move_to_end(key)
        value: Value = self._functions[key]
        return value

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledFunctions:
        return type(self)()

    def __reduce__(self) -> Any:
        return type(self), ()


def training_loss_of(model: Any) -> Callable[..., tf.Tensor]:
    """The training loss of a batch (X, Y); without arguments, that of the data in the model.

    The function does not keep the model alive, because it is itself kept in the model.
    """
    reference = weakref.ref(model)

    def training_loss(*batch: tf.Tensor) -> tf.Tensor:
        model: Any = reference()
        if len(batch) == 0:
            return model.training_loss()
        return model.training_loss(batch)

    return training_loss


Names = Mapping[Any, str]
"""What variables are called in messages, by their references."""


def names_of_variables(model: tf.Module) -> Names:
    """The paths of the parameters to their variables, as ``gpflow.utilities.print_summary`` has
    them: all variables of parameters have the same name."""
    paths: dict[str, Any] = gpflow.utilities.parameter_dict(model)
    return {
        getattr(one, "unconstrained_variable", one).ref(): path.removeprefix(".")
        for path, one in paths.items()
    }


def connected(
    gradients: Sequence[tf.Tensor | None], variables: Sequence[tf.Variable], names: Names
) -> list[tf.Tensor]:
    """The gradients as tensors.

    :raises ValueError: If a gradient is None, because the loss does not depend on its variable.
    """
    unused = [v for v, gradient in zip(variables, gradients, strict=True) if gradient is None]
    if unused:
        shown = ", ".join(f"{names.get(v.ref(), v.name)} of shape {tuple(v.shape)}" for v in unused)
        raise ValueError(
            f"model: the loss does not depend on the trainable variables {shown}; exclude their "
            "parameters with gpflow.set_trainable(parameter, False)."
        )
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def _describe(model: tf.Module) -> list[Any]:
    """Everything that the graphs of a model may contain as constants, as a flat list of plain
    values and objects. The objects are kept alive, so that no other object gets their identity."""
    described: list[Any] = [gpflow.config.config()]
    seen: set[int] = set()

    def add(value: Any) -> None:
        if isinstance(value, _PLAIN):
            described.extend((type(value), value))
        elif isinstance(value, (tuple, list)):
            described.extend((type(value), len(value)))
            for item in value:
                add(item)
        elif isinstance(value, Mapping):
            described.extend((type(value), len(value)))
            for key, item in value.items():
                add(key)
                add(item)
        else:
            described.append(_Identity(value))
            if id(value) not in seen:
                seen.add(id(value))
                add_contents(value)

    def add_contents(value: Any) -> None:
        if isinstance(value, np.ndarray):
            described.extend((value.shape, zlib.crc32(np.ascontiguousarray(value).data)))
        elif isinstance(value, gpflow.Parameter):
            add((value.unconstrained_variable, value.transform, value.prior, value.prior_on))
        elif isinstance(value, tf.Variable):
            add(value.trainable)
        elif isinstance(value, tf.Module) and _is_described(type(value)):
            if hasattr(value, "_traced_state"):
                add(value._traced_state())
            for name, attribute in vars(value).items():
                if not _is_bookkeeping(type(value), name):
                    add(name)
                    add(attribute)

    seen.add(id(model))
    add_contents(model)
    return described


class _Identity:
    """Wraps an object to compare by identity; bound methods of the same object are equal."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identity):
            return NotImplemented
        one, another = self._value, other._value
        if isinstance(one, types.MethodType) and isinstance(another, types.MethodType):
            return one.__self__ is another.__self__ and one.__func__ is another.__func__
        return one is another

    __hash__ = None  # type: ignore[assignment]


def _is_described(kind: type) -> bool:
    """Whether the attributes of modules of this type are described. Those of TensorFlow's own
    modules, such as bijectors and distributions, are not: they include changing caches."""
    return kind.__module__.partition(".")[0] not in ("tensorflow", "tensorflow_probability")


def _is_bookkeeping(kind: type, name: str) -> bool:
    """Whether an attribute has no influence on what a module computes: TensorFlow's attributes for
    checkpoints, caches, and the compiled functions themselves."""
    return (
        name == _ATTRIBUTE
        or name.startswith(("_self_", "_obj_reference"))
        or name in tf.Module._TF_MODULE_IGNORED_PROPERTIES
        or isinstance(getattr(kind, name, None), functools.cached_property)
    )


def _same(one: list[Any], other: list[Any]) -> bool:
    """Whether two descriptions are equal; NaN counts as equal to itself."""
    return len(one) == len(other) and all(
        a is b or (type(a) is type(b) and bool(a == b)) for a, b in zip(one, other, strict=True)
    )
