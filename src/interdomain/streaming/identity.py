"""How statistics record their features, so that no model with other features uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gpflow
import numpy as np

from ..sphere._typing import Array
from .contributions import Contributions

_MAX_PROBES = 32
_PROBES_PER_PASS = 4


@dataclass(frozen=True)
class Identity:
    """The features that statistics were computed with: their parameters, and values at a few rows.

    :ivar parameters: The values of the parameters that the features depend on, by name.
    :ivar mean: The kind of the mean function's columns.
    :ivar num_outputs: The number P of columns of Y.
    :ivar probes: Some rows of X, ``[k, D]``.
    :ivar stacked: The stacked features of these rows for Y = 0, ``[M + P + H, k]``.
    :ivar terms: The terms of the diagonal at these rows, ``[T, k]``.
    """

    parameters: Mapping[str, Array]
    mean: str
    num_outputs: int
    probes: Array
    stacked: Array
    terms: Array

    def joined(self, other: Identity) -> Identity:
        """The same features, with the probes of both."""
        room = max(0, _MAX_PROBES - len(self.probes))
        return replace(
            self,
            probes=np.concatenate([self.probes, other.probes[:room]]),
            stacked=np.concatenate([self.stacked, other.stacked[:, :room]], axis=1),
            terms=np.concatenate([self.terms, other.terms[:, :room]], axis=1),
        )


def differing_parameter(
    one: Mapping[str, Array], other: Mapping[str, Array], dtype: Any = np.float64
) -> str | None:
    """A description of the first parameter that differs; None if all are the same.

    Differences as small as the rounding of a transform and its inverse are ignored.
    """
    tolerance = 64 * float(np.finfo(dtype).eps)
    for name in sorted({*one, *other}):
        if name not in one or name not in other:
            return f"{name} is among the parameters of one only"
        a, b = np.asarray(one[name]), np.asarray(other[name])
        if a.shape != b.shape:
            return f"{name} has shape {a.shape} in one and {b.shape} in the other"
        if not np.allclose(a, b, rtol=tolerance, atol=0.0):
            where = np.unravel_index(np.argmax(np.abs(a - b)), a.shape) if a.ndim else ()
            return f"{name} is {a[where]:.17g} in one and {b[where]:.17g} in the other" + (
                f" at {[int(i) for i in where]}" if a.ndim else ""
            )
    return None


def identify(contributions: Contributions, X: Array) -> Identity:
    """The identity of the features; the first few rows of X serve as probes."""
    probes = np.array(X[:_PROBES_PER_PASS], np.float64)
    stacked, terms = contributions.evaluate(
        probes, np.zeros((len(probes), contributions.num_outputs))
    )
    return Identity(
        parameters=contributions.values(),
        mean=contributions.mean.kind,
        num_outputs=contributions.num_outputs,
        probes=probes,
        stacked=stacked.astype(np.float64),
        terms=terms.astype(np.float64),
    )


def mismatch(identity: Identity, contributions: Contributions) -> str | None:
    """A description of how the features differ from those of the identity; None if they do not."""
    if identity.probes.shape[1] != contributions.num_columns:
        return f"X had {identity.probes.shape[1]} columns, and has {contributions.num_columns}"
    if identity.num_outputs != contributions.num_outputs:
        return f"Y had {identity.num_outputs} columns, and has {contributions.num_outputs}"
    if identity.mean != contributions.mean.kind:
        return f"the mean function was {identity.mean}, and is {contributions.mean.kind}"
    if (
        len(identity.stacked) != contributions.num_stacked
        or len(identity.terms) != contributions.num_terms
    ):
        return (
            f"there were {len(identity.stacked)} columns in sum and {len(identity.terms)} terms of "
            f"the diagonal, and are {contributions.num_stacked} and {contributions.num_terms}"
        )
    dtype = gpflow.default_float()
    difference = differing_parameter(identity.parameters, contributions.values(), dtype)
    if difference is not None:
        return difference
    outside = contributions.complaint(identity.probes, "rows that they were computed for")
    if outside is not None:
        return f"the features are made for others: {outside.what}"
    outputs = np.zeros((len(identity.probes), contributions.num_outputs))
    now = contributions.evaluate(identity.probes, outputs)
    tolerance = float(np.finfo(dtype).eps) ** 0.6
    for then, values in zip((identity.stacked, identity.terms), now, strict=True):
        scale = np.max(np.abs(then), initial=0.0)  # there may be no terms
        if not np.allclose(then, values, rtol=tolerance, atol=tolerance * scale):
            return "the features have other values at rows that they were computed for"
    return None
