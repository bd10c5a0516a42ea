"""Which models suit a table, how large, and the code of each."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gpflow.base import RegressionData
from gpflow.likelihoods import Likelihood
from gpflow.utilities import deepcopy

from .._targets import number_of_latents
from . import recipes
from .prepared import PreparedData
from .race import Entrant

_MOST_ROWS_EXACT = 2_000

_BOTH = "harmonics and neighbours"

_MOST_WAVE_COLUMNS = 3

_MOST_SPLINE_COLUMNS, _SPLINES_EACH = 2, 20
"""For splines; and how many more than of other features, times: they are sparse."""

_MOST_COLUMNS = 50
"""For harmonics: with more columns there are too many harmonics of degree two to start from."""

_MOST_PATCHES = 100

_BATCH_SIZE = 1_000

STEPS = 3_000
"""The number of training steps with minibatches of candidates at full size."""

_RATE = 0.03
"""Adam's learning rate with harmonics (``benchmarks/any_likelihood``)."""


class Candidate(NamedTuple):
    """A model that is suitable for a data set, with its size and how to train it.

    :ivar why: What the model is, and when it is worth trying.
    :ivar code: A script that makes and trains it, from X and Y as they were passed; and from
        ``likelihood``, if one was passed. It ends with a function ``predict(X_new)``.
    :ivar entrant: It as an entrant of a :func:`~interdomain.race` on scaled rows.
    """

    why: str
    code: str
    entrant: Entrant


def candidates_for(
    data: PreparedData, likelihood: Likelihood | None, num_inducing: int, steps: Mapping[str, int]
) -> dict[str, Candidate]:
    """The candidates that suit the data, by name, the likeliest winners first.

    :param likelihood: None for Gaussian noise.
    :param num_inducing: The largest number of points, harmonics or features of effects.
    :param steps: The argument ``steps`` of minibatches; nothing, to leave it to a race.
    """
    gaussian, (num_rows, columns), outputs = likelihood is None, data.X.shape, data.Y.shape[1]
    size = min(num_inducing, max(num_rows // 4, 2))
    two = np.all((data.X == data.X.min(axis=0)) | (data.X == data.X.max(axis=0)), axis=0)
    common = {
        "likelihood": "gpflow.likelihoods.Gaussian(0.1)" if gaussian else None,
        "num_latent": number_of_latents(likelihood, outputs) if likelihood else outputs,
        "num_inducing": size,
        "categorical": np.flatnonzero(two).tolist(),  # two values count as categories
        "image_shape": data.image_shape,
    }
    is_table = data.image_shape is None
    most_columns = (_MOST_SPLINE_COLUMNS, _MOST_WAVE_COLUMNS, _MOST_COLUMNS)
    few, boxed, enough = (is_table and columns <= most for most in most_columns)
    zonal = enough and not few  # of few columns waves say the same, sooner
    several, near = is_table and columns > 1, enough and gaussian
    passes = recipes.IN_ONE_PASS if gaussian else recipes.IN_A_FEW_PASSES
    effects = recipes.EFFECTS if gaussian else recipes.ALL_PAIRS + passes
    patches, twice = {"num_inducing": min(size, _MOST_PATCHES)}, {"num_inducing": 2 * size}
    waves, chosen = {"num_inducing": min(2 * size, num_rows // 2)}, {"num_inducing": size}
    splines = {"num_splines": [round((_SPLINES_EACH * size) ** (1 / columns))] * columns}
    degrees = {"max_degree": _highest_degree(columns, size)}
    batches = {"batch_size": min(_BATCH_SIZE, num_rows), **steps}
    diagonal, full = {**batches, "optimizer": (None, _RATE)}, {**batches, "optimizer": _RATE}
    minibatches, exact = recipes.BY_MINIBATCHES, gaussian and num_rows <= _MOST_ROWS_EXACT
    # The name, whether it suits, the script, the arguments of `fit`, and what is other than common.
    listed: list[tuple[str, bool, str, Mapping[str, Any] | None, dict[str, Any]]] = [
        ("exact", exact, recipes.EXACT, {}, {}),
        ("patches", not is_table, recipes.PATCHES, batches, patches),
        ("waves", boxed, recipes.WAVES + passes, {}, waves),
        ("splines", few and gaussian, recipes.SPLINES + passes, {}, splines),
        ("neighbours", near, recipes.NEIGHBOURS, {}, {}),
        ("effects", several, effects, None if gaussian else {}, {}),
        ("harmonics", zonal, recipes.HARMONICS + passes, chosen, {}),
        ("points", True, recipes.POINTS, batches, {}),
        ("orthogonal points", True, recipes.ORTHOGONAL_POINTS, batches, {}),
        ("blocks", is_table, recipes.BLOCKS, batches, {}),
        ("effects and harmonics", near and zonal, recipes.EFFECTS_AND_HARMONICS, {}, twice),
        (_BOTH, near and zonal, recipes.HARMONICS_AND_NEIGHBOURS, {}, degrees),
        ("harmonics with diagonal q", zonal, minibatches, diagonal, {"q_diag": True}),
        ("harmonics with full q", zonal, minibatches, full, {"q_diag": False}),
    ]
    if data.on_globe:
        degree = {"max_degree": max(math.isqrt(size) - 1, 1)}
        listed = [
            ("exact", exact, recipes.GLOBE_EXACT, {}, {}),
            ("neighbours", gaussian, recipes.GLOBE_NEIGHBOURS, {}, {}),
            ("harmonics", True, recipes.GLOBE_HARMONICS + passes, {}, degree),
            ("points", True, recipes.GLOBE_POINTS, batches, {}),
            (_BOTH, gaussian, recipes.GLOBE_HARMONICS_AND_NEIGHBOURS, {}, degree),
        ]
    suitable = {}
    for name, suits, recipe, training, settings in listed:
        if suits:
            # Above it the values of the names that it uses, but for those that are None.
            names = [
                f"{name} = {value}"
                for name, value in (common | settings).items()
                if value is not None and re.search(rf"(?<![.\w]){name}(?![=\w])", recipe)
            ]
            script = "\n".join([*names, recipe])
            lines = [recipes.IMPORTS, data.code, "", script]
            if training is not None:  # else it is trained already
                rows = ["(X_train, Y_train)"] if "batch_size" in training else []
                texts = [f"{argument}={value!r}" for argument, value in training.items()]
                lines.append(f"idm.fit({', '.join(['model', *rows, *texts])})")
            build = functools.partial(_built, script, likelihood)
            why = recipe.splitlines()[0].removeprefix("# ")
            lines += ["", "", data.predict] if data.predict else [""]
            suitable[name] = Candidate(why, "\n".join(lines), (build, training))
    return suitable


def _highest_degree(columns: int, size: int) -> int:
    """Of harmonics of all degrees up to it, which are no more than this; at least 1."""
    of_degrees = (
        math.comb(L + columns, L) + math.comb(L + columns - 1, L - 1) for L in itertools.count(1)
    )
    return max(1, sum(1 for _ in itertools.takewhile(lambda number: number <= size, of_degrees)))


def _built(script: str, likelihood: Likelihood | None, data: RegressionData) -> Any:
    """The model that a script makes of scaled rows."""
    scope: dict[str, Any] = {"X_train": data[0], "Y_train": data[1]}
    if likelihood is not None:
        scope["likelihood"] = deepcopy(likelihood)  # each model has its own
    exec(recipes.IMPORTS + script, scope)
    return scope["model"]
