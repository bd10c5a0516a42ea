"""Descriptions of a model and its parts without parameter values, and checksums of its rows."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.functions import Function
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

_LISTED = 16  # a description lists arrays of at most this size, and has a checksum of larger ones
_ROWS_IN_CHECKSUM = 1_000

KEPT = "_compiled_by_interdomain"  # the attribute of a model that holds its compiled functions

# Prefixes of attributes that are not settings: TensorFlow's own attributes, and KEPT.
_TRACKING = ("_self_", "_tf_", "_obj_", KEPT)

_PLAIN = (bool, int, float, str)
_PARTS = (Kernel, Likelihood, InducingVariables, Function)

# The attributes that change the objective, for models and modules that are not parts by themselves
# (a layer, a q). Their other attributes may count calls, or affect only predictions.
_SETTINGS = ("charge", "num_data", "num_samples", "seed", "whiten")


def attributes_of(module: tf.Module) -> dict[str, Any]:
    """The attributes of a module by name, without caches and without what TensorFlow adds."""
    kind = type(module)
    return {
        name: value
        for name, value in vars(module).items()
        if not isinstance(getattr(kind, name, None), functools.cached_property)
        and not name.startswith(_TRACKING)
    }


def checksum_of_rows(arrays: Iterable[Any]) -> int:
    """A checksum that identifies the rows of arrays. It reads at most 1,000 evenly spaced rows, so
    that little of a file is read."""
    number = 0
    for array in map(np.asanyarray, arrays):
        places = np.linspace(0, len(array) - 1, min(len(array), _ROWS_IN_CHECKSUM))
        rows = array[places.astype(np.int64)]
        number = zlib.crc32(str(array.shape).encode() + rows.tobytes(), number)
    return number


def describe(
    path: str, value: Any, described: dict[str, Any], seen: set[int], *, parts_only: bool = False
) -> None:
    """Add the classes and the settings of a module and of its parts to ``described``, by path.

    Parameters are left out, because the values of relevant parameters are compared elsewhere.

    :param parts_only: Whether to describe only kernels, likelihoods, inducing variables and mean
        functions, at any depth in layers and lists; for other modules, only a few settings.
    """
    if isinstance(value, (gpflow.Parameter, tf.Variable)) or id(value) in seen:
        return
    parts_only = parts_only and not isinstance(value, _PARTS)
    parts: dict[str, Any] | None = None
    if isinstance(value, tf.Module):
        seen.add(id(value))
        own = attributes_of(value)
        parts = {f".{key.lstrip('_')}": part for key, part in own.items() if key != "_name"}
        if parts_only:
            settings = {key: own[key] for key in _SETTINGS if isinstance(own.get(key), _PLAIN)}
            described |= {f"{path}.{key}".lstrip("."): part for key, part in settings.items()}
        else:
            described[path] = type(value).__name__
    elif isinstance(value, Mapping):
        parts = {f".{key}": part for key, part in value.items()}
    elif isinstance(value, (list, tuple)) and not all(isinstance(v, (int, float)) for v in value):
        parts = {f"[{number}]": part for number, part in enumerate(value)}
    if parts is not None:
        for key, part in parts.items():
            describe((path + key).lstrip("."), part, described, seen, parts_only=parts_only)
    elif parts_only:
        return
    elif isinstance(value, _PLAIN) or value is None:
        described[path] = value
    elif isinstance(value, (np.ndarray, np.generic, list, tuple, tf.Tensor)):
        array = np.asarray(value)
        listed = array.size <= _LISTED and array.dtype.kind in "biuf"
        checksum = zlib.crc32(np.ascontiguousarray(array).tobytes())
        described[path] = array.tolist() if listed else [list(array.shape), checksum]
    else:
        name = getattr(value, "__qualname__", type(value).__name__)  # functions and classes have it
        described[path] = str(value) if isinstance(value, slice) else name
