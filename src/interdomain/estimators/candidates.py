"""The candidates for a data set: suitable models, their sizes, and the program of each."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gpflow.likelihoods import Gaussian, Likelihood, StudentT
from gpflow.utilities import deepcopy

from .._targets import number_of_latents
from . import group_recipes, recipes
from .prepared import PreparedData
from .programs import program
from .race import Entrant

BOTH = "harmonics and neighbours"

NAMED: Mapping[str, tuple[str, ...]] = {
    "exact": ("exact", "all rows"),
    "globe": (BOTH, "harmonics"),
    "neighbours": ("neighbours",),
    "splines": ("splines",),
    "waves": ("waves",),
    "harmonics": ("harmonics",),
    "effects": ("effects",),
    "points": ("points",),
}
"""The candidates for each value of an estimator's ``model``; the first that suits is used."""

ENDING = ("waves", "splines", "neighbours", "effects", "harmonics", "effects and harmonics", BOTH)
"""Candidates whose training ends by itself. With Gaussian noise, rows can be added to them."""

BOXED = "waves", "splines"
"""Candidates whose features cover a box; estimators predict only the mean of y outside of it."""

_MOST_COLUMNS = 2, 3, 50
"""The largest numbers of columns for splines, waves, and harmonics of degree 2."""

_SPLINES_EACH = 20
"""The number of splines, which are sparse, for each feature of a dense candidate."""

MOST_ROWS_EXACT, _MOST_PATCHES, _BATCH_SIZE = 2_000, 100, 1_000

_WEIGHTED = {"waves", "splines", "neighbours", "harmonics"}
"""Candidates that support noise weights of rows."""

_SUMS = {"waves", "splines", "effects", "harmonics", "effects and harmonics"}
"""Candidates that are computed from sums over rows."""

_MOST_LEVELS_TRAINED = 2_000
"""The largest number of levels for which neighbours are trained on the rows of all levels."""

_GROUPS = "Each level of a column of many categories adds a number."

_FEW_ROWS = 2_000
"""The largest number of rows for which estimators leave out candidates that are trained on
minibatches, since these would need all of the seconds."""

MOST_ROWS_OF_Q, _STEPS_OF_Q = 200, 200
"""The largest number of rows of VGP, and its steps: separable classes have no finite optimum."""

_PASSES = 60
"""The largest number of passes over the rows of a DualSVGP."""

STEPS = 3_000
"""The number of minibatch steps that train a candidate at full size."""

_RATE = 0.03
"""Adam's learning rate for harmonics on minibatches (``benchmarks/any_likelihood``)."""


_Listed: TypeAlias = tuple[
    str, bool, Callable[..., Any], Mapping[str, Any] | None, Mapping[str, Any]
]


class Candidate(NamedTuple):
    """A model that suits a data set, with its size and the arguments of its training.

    :ivar why: A description of the model, and of data for which it is worth trying.
    :ivar code: The program (:func:`.programs.program`) that makes and trains the model.
    :ivar entrant: The model as an entrant of a :func:`~interdomain.race` on scaled rows.
    """

    why: str
    code: str
    entrant: Entrant


def candidates_for(
    data: PreparedData, likelihood: Likelihood | None, num_inducing: int, steps: Mapping[str, int]
) -> dict[str, Candidate]:
    """The candidates that suit the data, by name, the likeliest winners first. Beside groups,
    neighbours are last: they would leave no time for the others.

    :param likelihood: The likelihood; None for Gaussian noise.
    :param num_inducing: The largest number of points, harmonics or features of effects.
    :param steps: ``{"steps": number}`` for training on minibatches; empty if a race ends it.
    """
    gaussian, num_rows, outputs = likelihood is None, len(data.X), data.Y.shape[1]
    columns, numbers = data.num_numeric, data.X[:, : data.num_numeric]
    size = min(num_inducing, max(num_rows // 4, 2))
    two = np.all((numbers == numbers.min(axis=0)) | (numbers == numbers.max(axis=0)), axis=0)
    common = {
        "num_inducing": size,
        "categorical": np.flatnonzero(two).tolist(),  # columns of two values
        "image_shape": data.image_shape,
        "likelihood": likelihood or Gaussian(0.1),
        "latents": number_of_latents(likelihood, outputs) if likelihood else outputs,
        "num_levels": list(data.num_levels),
        "inputs": "degrees" if data.on_globe else "euclidean",
        "box": data.box,
    }
    # Whether an argument with a default is passed.
    passed = {"likelihood": not gaussian, "box": data.box is not None}
    is_table, real = data.image_shape is None, gaussian or type(likelihood) is StudentT
    few, boxed, enough = (is_table and columns <= most for most in _MOST_COLUMNS)
    zonal = enough and not few  # for few columns waves are faster
    several, near = is_table and columns > 1, enough and real
    effects = recipes.effects if gaussian else recipes.effects_of_all_pairs
    patches, twice = {"num_inducing": min(size, _MOST_PATCHES)}, {"num_inducing": 2 * size}
    waves, chosen = {"num_inducing": min(2 * size, num_rows // 2)}, {"num_inducing": size}
    splines = {"num_splines": [round((_SPLINES_EACH * size) ** (1 / columns))] * columns}
    degrees = {"max_degree": _highest_degree(columns, size)}
    batches = {"batch_size": min(_BATCH_SIZE, num_rows), **steps}
    diagonal, full = {**batches, "optimizer": (None, _RATE)}, {**batches, "optimizer": _RATE}
    nearby = {} if data.X_new is None else {"options": {"predict_at": data.X_new}}
    minibatches, exact = recipes.harmonics_by_minibatches, gaussian and num_rows <= MOST_ROWS_EXACT
    both, passes = near and zonal and gaussian, {} if gaussian else {"steps": _PASSES}
    # The name, whether it suits, the recipe, the arguments of `fit`, and changes of `common`.
    listed: list[_Listed] = [
        ("exact", exact, recipes.exact, {}, {}),
        (
            "all rows",
            is_table and not gaussian and num_rows <= MOST_ROWS_OF_Q,
            recipes.all_rows,
            {"steps": _STEPS_OF_Q},
            {},
        ),
        ("patches", not is_table, recipes.patches, batches, patches),
        ("waves", boxed, recipes.waves, passes, waves),
        ("splines", few and gaussian, recipes.splines, {}, splines),
        ("neighbours", near, recipes.neighbours, nearby, {}),
        ("effects", several, effects, None if gaussian else passes, {}),
        ("harmonics", zonal, recipes.harmonics, {**chosen, **passes}, {}),
        ("points", True, recipes.points, batches, {}),
        ("orthogonal points", True, recipes.orthogonal_points, batches, {}),
        ("blocks", is_table, recipes.blocks, batches, {}),
        ("effects and harmonics", both, recipes.effects_and_harmonics, {}, twice),
        (BOTH, both, recipes.harmonics_and_neighbours, nearby, degrees),
        ("harmonics with diagonal q", zonal, minibatches, diagonal, {"q_diag": True}),
        ("harmonics with full q", zonal, minibatches, full, {"q_diag": False}),
    ]
    if data.on_globe:
        degree = {"max_degree": max(math.isqrt(size) - 1, 1)}
        listed = [
            ("exact", exact, recipes.globe_exact, {}, {}),
            ("neighbours", real, recipes.globe_neighbours, nearby, {}),
            ("harmonics", True, recipes.globe_harmonics, passes, degree),
            ("points", True, recipes.globe_points, batches, {}),
            (BOTH, gaussian, recipes.globe_harmonics_and_neighbours, nearby, degree),
        ]
    if data.num_levels:
        listed = [_with_groups(*each, data.num_levels) for each in listed]
        listed.sort(key=lambda each: each[0] == "neighbours")
    if data.noise_weights is not None:
        listed = [each for each in listed if each[0] in _WEIGHTED]
    suitable = {}
    for name, suits, recipe, training, recipe_arguments in listed:
        if suits:
            given = {**common, **recipe_arguments}
            settings = _settings(recipe, given, passed)
            if recipe is group_recipes.beside_groups:
                settings["settings"] = _settings(given["recipe"], given, passed)
            code = program(data, recipe, settings, training)
            why = " ".join(str(given.get("recipe", recipe).__doc__).split())
            why += f" {_GROUPS}" * (recipe is group_recipes.beside_groups)
            known = data.noise_weights is not None
            build = functools.partial(_built, recipe, settings, known_noise=known)
            suitable[name] = Candidate(why, code, (build, training))
    return suitable


def names_for(
    model: str, data: PreparedData, *, gaussian: bool, grows: bool
) -> tuple[str, ...] | None:
    """The names of the candidates of an estimator; None for all.

    :param model: "auto", or a name of :data:`NAMED`.
    :param gaussian: Whether the noise is Gaussian.
    :param grows: Whether rows will be added later.
    """
    if model != "auto":
        return NAMED[model]
    if data.noise_weights is not None or (grows and not gaussian):
        return NAMED["neighbours"]
    if grows:
        return ENDING
    if len(data.X) <= MOST_ROWS_OF_Q:
        return NAMED["exact"]
    return NAMED["exact"] + ENDING if len(data.X) <= _FEW_ROWS else None


def _with_groups(
    name: str,
    suits: bool,
    recipe: Callable[..., Any],
    training: Mapping[str, Any] | None,
    recipe_arguments: Mapping[str, Any],
    num_levels: Sequence[int],
) -> _Listed:
    """The candidate with a number for each level of groups, by a recipe for groups or by
    :func:`.beside_groups`. Candidates that are trained on minibatches do not suit: their q would
    need all levels."""
    if name == "exact":
        return name, suits, group_recipes.exact_and_groups, training, {}
    if name == "neighbours":
        assert training is not None
        options = {"options": {"parts": "both", **training.get("options", {})}}
        if max(num_levels) > _MOST_LEVELS_TRAINED:
            return name, suits, group_recipes.neighbours_and_many_groups, None, {}
        return name, suits, group_recipes.neighbours_and_groups, options, {}
    suits = suits and name in _SUMS
    more = {"recipe": recipe, "training": training, "settings": {}}
    return name, suits, group_recipes.beside_groups, {}, {**recipe_arguments, **more}


def _settings(
    recipe: Callable[..., Any], given: Mapping[str, Any], passed: Mapping[str, bool]
) -> dict[str, Any]:
    """The arguments of a recipe after the rows. ``passed`` says which defaults are overridden."""
    return {
        argument: given[argument]
        for argument, parameter in list(inspect.signature(recipe).parameters.items())[1:]
        if parameter.default is inspect.Parameter.empty or passed[argument]
    }


def _highest_degree(columns: int, size: int) -> int:
    """The highest degree with at most ``size`` harmonics; at least 1."""
    degree = 1
    while math.comb(degree + 1 + columns, columns) + math.comb(degree + columns, columns) <= size:
        degree += 1
    return degree


def _built(
    recipe: Callable[..., Any],
    settings: Mapping[str, Any],
    data: tuple[Any, ...],
    *,
    known_noise: bool,
) -> Any:
    """The model of scaled rows, with its own copy of the likelihood."""
    model = recipe(data, **_with_own_likelihoods(settings))
    return recipes.known_noise(model) if known_noise else model


def _with_own_likelihoods(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a recipe, with copies of the likelihoods."""
    own = dict[str, Any]()
    for name, value in settings.items():
        own[name] = deepcopy(value) if isinstance(value, Likelihood) else value
        if name == "settings":
            own[name] = _with_own_likelihoods(value)
    return own
