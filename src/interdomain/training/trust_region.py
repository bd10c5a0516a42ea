"""Limits how far parameters may move while the sites that they are trained on are fixed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import gpflow
import numpy as np

from ..sphere._typing import Array

_LEAST_SHARE = 1e-6


@contextmanager
def limited(parameters: Iterable[gpflow.Parameter], factor: float = 4.0) -> Iterator[None]:
    """Limit by how much positive parameters change within this context.

    Within it, parameters may change freely. At its end, all of them are moved back by the same
    share of the way, so that no positive parameter has changed by more than a factor. The sites are
    tangents at one q; the q of other parameters may be far from it.

    :param parameters: The parameters that are trained.
    :param factor: The largest factor.
    """
    trained = list(parameters)
    before = [parameter.numpy() for parameter in trained]
    yield
    after = [parameter.numpy() for parameter in trained]
    share = 1.0
    while share > _LEAST_SHARE:
        now = [_between(*pair, share) for pair in zip(before, after, strict=True)]
        if all(_within(*pair, factor) for pair in zip(before, now, strict=True)):
            break
        share /= 2
    if share < 1:
        for parameter, value in zip(trained, now, strict=True):
            parameter.assign(value)


def _between(before: Array, after: Array, share: float) -> Array:
    """A part of the way, of positive numbers that of their logarithms: where a variance and a
    lengthscale make up for each other, they still do half-way."""
    positive = (before > 0) & (after > 0)
    logs = [np.log(np.where(positive, value, 1.0)) for value in (before, after)]
    geometric = np.exp(logs[0] + share * (logs[1] - logs[0]))
    return np.where(positive, geometric, before + share * (after - before))


def _within(before: Array, now: Array, factor: float) -> bool:
    positive = (before > 0) & (now > 0)
    ratios = np.divide(now, before, out=np.ones_like(before), where=positive)
    return bool(np.all((ratios <= factor) & (ratios >= 1 / factor)))
