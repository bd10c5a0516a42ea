"""Which models suit a table, how large, and the code of each."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.utilities import deepcopy

from .._targets import number_of_latents
from . import recipes
from .prepared import PreparedData
from .programs import program
from .race import Entrant

BOTH = "harmonics and neighbours"

_MOST_COLUMNS = 2, 3, 50
"""For splines, waves and harmonics: with more, there are too many harmonics of degree two."""

_SPLINES_EACH = 20
"""How many splines there are for each feature of another kind: they are sparse."""

_MOST_ROWS_EXACT, _MOST_PATCHES, _BATCH_SIZE = 2_000, 100, 1_000

STEPS = 3_000
"""The number of training steps with minibatches of candidates at full size."""

_RATE = 0.03
"""Adam's learning rate with harmonics (``benchmarks/any_likelihood``)."""


class Candidate(NamedTuple):
    """A model that is suitable for a data set, with its size and how to train it.

    :ivar why: What the model is, and when it is worth trying.
    :ivar code: The program (:func:`.programs.program`) that makes and trains it.
    :ivar entrant: It as an entrant of a :func:`~interdomain.race` on scaled rows.
    """

    why: str
    code: str
    entrant: Entrant


def candidates_for(
    data: PreparedData, likelihood: Likelihood | None, num_inducing: int, steps: Mapping[str, int]
) -> dict[str, Candidate]:
    """The candidates that suit the data, by name, the likeliest winners first.

    :param likelihood: The likelihood; None for Gaussian noise.
    :param num_inducing: The largest number of points, harmonics or features of effects.
    :param steps: The argument ``steps`` of minibatches; nothing, to leave it to a race.
    """
    gaussian, (num_rows, columns), outputs = likelihood is None, data.X.shape, data.Y.shape[1]
    size = min(num_inducing, max(num_rows // 4, 2))
    two = np.all((data.X == data.X.min(axis=0)) | (data.X == data.X.max(axis=0)), axis=0)
    common = {
        "num_inducing": size,
        "categorical": np.flatnonzero(two).tolist(),  # two values count as categories
        "image_shape": data.image_shape,
        "likelihood": likelihood or Gaussian(0.1),
        "latents": number_of_latents(likelihood, outputs) if likelihood else outputs,
    }
    is_table = data.image_shape is None
    few, boxed, enough = (is_table and columns <= most for most in _MOST_COLUMNS)
    zonal = enough and not few  # of few columns waves say the same, sooner
    several, near = is_table and columns > 1, enough and gaussian
    effects = recipes.effects if gaussian else recipes.effects_of_all_pairs
    patches, twice = {"num_inducing": min(size, _MOST_PATCHES)}, {"num_inducing": 2 * size}
    waves, chosen = {"num_inducing": min(2 * size, num_rows // 2)}, {"num_inducing": size}
    splines = {"num_splines": [round((_SPLINES_EACH * size) ** (1 / columns))] * columns}
    degrees = {"max_degree": _highest_degree(columns, size)}
    batches = {"batch_size": min(_BATCH_SIZE, num_rows), **steps}
    diagonal, full = {**batches, "optimizer": (None, _RATE)}, {**batches, "optimizer": _RATE}
    nearby = {} if data.X_new is None else {"options": {"predict_at": data.X_new}}
    minibatches, exact = recipes.harmonics_by_minibatches, gaussian and num_rows <= _MOST_ROWS_EXACT
    # The name, whether it suits, the recipe, the arguments of `fit`, and what is other than common.
    listed: list[tuple[str, bool, Callable[..., Any], Mapping[str, Any] | None, dict[str, Any]]] = [
        ("exact", exact, recipes.exact, {}, {}),
        ("patches", not is_table, recipes.patches, batches, patches),
        ("waves", boxed, recipes.waves, {}, waves),
        ("splines", few and gaussian, recipes.splines, {}, splines),
        ("neighbours", near, recipes.neighbours, nearby, {}),
        ("effects", several, effects, None if gaussian else {}, {}),
        ("harmonics", zonal, recipes.harmonics, chosen, {}),
        ("points", True, recipes.points, batches, {}),
        ("orthogonal points", True, recipes.orthogonal_points, batches, {}),
        ("blocks", is_table, recipes.blocks, batches, {}),
        ("effects and harmonics", near and zonal, recipes.effects_and_harmonics, {}, twice),
        (BOTH, near and zonal, recipes.harmonics_and_neighbours, nearby, degrees),
        ("harmonics with diagonal q", zonal, minibatches, diagonal, {"q_diag": True}),
        ("harmonics with full q", zonal, minibatches, full, {"q_diag": False}),
    ]
    if data.on_globe:
        degree = {"max_degree": max(math.isqrt(size) - 1, 1)}
        listed = [
            ("exact", exact, recipes.globe_exact, {}, {}),
            ("neighbours", gaussian, recipes.globe_neighbours, nearby, {}),
            ("harmonics", True, recipes.globe_harmonics, {}, degree),
            ("points", True, recipes.globe_points, batches, {}),
            (BOTH, gaussian, recipes.globe_harmonics_and_neighbours, nearby, degree),
        ]
    suitable = {}
    for name, suits, recipe, training, of_recipe in listed:
        if suits:
            given, parameters = common | of_recipe, inspect.signature(recipe).parameters
            # The default of a likelihood is Gaussian noise.
            settings = {
                argument: given[argument]
                for argument in list(parameters)[1:]
                if not gaussian or parameters[argument].default is inspect.Parameter.empty
            }
            code = program(data.code, recipe, settings, training, standardised=gaussian)
            why = " ".join(str(recipe.__doc__).split())
            build = functools.partial(_built, recipe, settings)
            suitable[name] = Candidate(why, code, (build, training))
    return suitable


def _highest_degree(columns: int, size: int) -> int:
    """The highest degree up to which harmonics are no more than this; at least 1."""
    degree = 1
    while math.comb(degree + 1 + columns, columns) + math.comb(degree + columns, columns) <= size:
        degree += 1
    return degree


def _built(recipe: Callable[..., Any], settings: Mapping[str, Any], data: RegressionData) -> Any:
    """The model of scaled rows. Each has its own likelihood."""
    likelihoods = {k: deepcopy(v) for k, v in settings.items() if isinstance(v, Likelihood)}
    return recipe(data, **{**settings, **likelihoods})
