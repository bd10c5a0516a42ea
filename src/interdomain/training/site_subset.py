"""A beginning for :func:`fit_collapsed`, from some of the rows: features, parameters and q."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ..models import CollapsedSVGP
from ..models.sites import Sites
from .pursuit import fit_quietly
from .results import NonFiniteError
from .trust_region import limited

_TURNS = 3

_PASSES = 2
"""For the sites of new features, before these are trained again."""


def begin_on_subset(
    model: CollapsedSVGP,
    size: int,
    *,
    steps: int,
    seed: int,
    options: Mapping[str, Any] | None,
    passes: Callable[..., None],
) -> None:
    """Train a model of some rows, in turns of passes and of steps of L-BFGS for all parameters of
    the kernel, features included, with the sites of these rows; and begin with its q.

    :param passes: Trains such a model as it is, features excluded; with ``number=2`` q alone, in as
        many passes.
    """
    X, Y = model.draw(size, seed=seed)
    subset = model.model_of((X, Y))
    passes(subset)
    if any(parameter.trainable for parameter in model.feature_parameters.values()):
        evidence = subset.evidence_of(X)
        for _ in range(_TURNS):
            subset.take_sites(evidence, X, Y)
            # The last parameters that are good are enough.
            with limited(model.trainable_parameters), suppress(NonFiniteError):
                fit_quietly(evidence, steps=-(-steps // _TURNS), options=options, progress=False)
            subset.assign_sites(Sites(*(np.asarray(part) for part in evidence.sites())))
            passes(subset, number=_PASSES)
        passes(subset)
    model.assign_sites(subset.sites)
