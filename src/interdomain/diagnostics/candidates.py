"""Which models fit a table, how large, and the code of each."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.quadrature import NDiagGHQuadrature
from gpflow.utilities import deepcopy

from ..models.targets import densities_of, number_of_latents
from ..tables import Entrant
from ..transforms import PrincipalNegation
from . import recipes
from .nystrom import rank_transforms
from .prepared import PreparedData

MOST_ROWS_EXACT = 2_000

MOST_WAVE_COLUMNS = 3

MOST_COLUMNS = 50
"""For harmonics: with more columns there are too many harmonics of degree two to start from."""

MOST_GROUPS = 2

MOST_PATCHES = 100

ROWS_TO_RANK = 1_000
"""How many rows transformations are ranked on."""

ROWS_OF_A_POINT = 10
"""Transformations are ranked with one inducing point for this number of rows."""

BATCH_SIZE = 1_000

RATE = 0.03
"""Adam's learning rate with harmonics (``benchmarks/any_likelihood``)."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """
    A model that is suitable for a data set, with its size and how to train it.

    :ivar name: its name in tables.
    :ivar recipe: a function that makes the model from X, Y and the ``arguments``.
    :ivar arguments: the arguments of the recipe besides X, Y and ``likelihood``.
    :ivar training: the name of the function in ``interdomain.training`` that trains it; None if
        the recipe does.
    :ivar training_arguments: the arguments of that function.
    :ivar likelihood: the likelihood; None for Gaussian noise.
    :ivar preparation: lines of code that turn the X and Y that were passed into those of the model.
    """

    name: str
    recipe: Callable[..., Any] = field(repr=False)
    arguments: Mapping[str, Any]
    training: str | None
    training_arguments: Mapping[str, Any]
    likelihood: Likelihood | None
    preparation: tuple[str, ...] = field(repr=False)

    @property
    def why(self) -> str:
        """What the model is, and when it is worth trying."""
        return str(inspect.getdoc(self.recipe))

    @property
    def entrant(self) -> Entrant:
        """The candidate as an entrant of a :func:`~interdomain.tables.race`.

        Each model that it builds has its own copy of the likelihood."""

        def build(data: RegressionData) -> Any:
            own = dict(self.arguments)
            if "likelihood" in inspect.signature(self.recipe).parameters:
                given = self.likelihood
                own["likelihood"] = Gaussian(0.1) if given is None else deepcopy(given)
            return self.recipe(*data, **own)

        return Entrant(build, self.training_arguments, trained=self.training is None)

    @property
    def code(self) -> str:
        """A script that makes and trains the model, from X and Y as they were passed; and from
        ``likelihood``, if that has settings of its own."""
        text = _body(self.recipe)
        values = {"likelihood": _likelihood_code(self.likelihood), **self.arguments}
        given = [
            f"{name} = {values[name]}"
            for name in inspect.signature(self.recipe).parameters
            if name in values
        ]
        given = [line for line in given if line != "likelihood = likelihood"]
        training = []
        if self.training is not None:
            data = ["(X, Y)"] if self.recipe in recipes.WITHOUT_DATA else []
            texts = [f"{name}={value!r}" for name, value in self.training_arguments.items()]
            training = [f"idm.training.{self.training}({', '.join(['model', *data, *texts])})"]
        lines = [*self.preparation, "", f"# {self.why}", *given, text, *training]
        return "\n".join([*_imports("\n".join(lines)), "", *lines, ""])


def _body(recipe: Callable[..., Any]) -> str:
    """The statements of a recipe, without its docstring and its return."""
    source = textwrap.dedent(inspect.getsource(recipe))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    first, last = function.body[1], function.body[-1]
    return textwrap.dedent("\n".join(source.splitlines()[first.lineno - 1 : last.lineno - 1]))


def _imports(text: str) -> list[str]:
    found = {
        "gpflow.": ["import gpflow"],
        "np.": ["import numpy as np"],
        "kmeans2(": ["from scipy.cluster.vq import kmeans2"],
        "idm.": ["", "import interdomain as idm"],
    }
    return [line for part, lines in found.items() if part in text for line in lines]


def _likelihood_code(likelihood: Likelihood | None) -> str:
    """How to make it; ``likelihood`` if that is not known: the user has it."""
    if likelihood is None:
        return "gpflow.likelihoods.Gaussian(0.1)"
    kind = type(likelihood)
    if densities_of(likelihood) is not kind:
        return "likelihood"
    sizes = {"MultiClass": "num_classes", "Softmax": "latent_dim"}
    size = [int(getattr(likelihood, sizes[kind.__name__]))] if kind.__name__ in sizes else []
    parameters = list(inspect.signature(kind).parameters.values())[len(size) :]
    required = [
        one
        for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    if required or _settings(likelihood) != _settings(kind(*size)):
        return "likelihood"
    return f"gpflow.likelihoods.{kind.__name__}({', '.join(map(str, size))})"


def _settings(likelihood: Likelihood) -> dict[str, Any]:
    """What may differ between two of a class."""
    settings = {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(likelihood).items()
        if not name.startswith("_") and not isinstance(value, (tf.Module, NDiagGHQuadrature))
    }
    for path, parameter in gpflow.utilities.parameter_dict(likelihood).items():
        value = np.asarray(parameter).tolist()
        settings[path] = value, parameter.trainable, parameter.prior is None
    return settings


@dataclass(frozen=True)
class Sizes:
    """How large candidates are.

    :ivar num_inducing: the largest number of points, harmonics or features of effects.
    :ivar steps: the number of training steps with minibatches.
    """

    num_inducing: int = 500
    steps: int = 3_000


def candidates_for(
    data: PreparedData,
    likelihood: Likelihood | None,
    sizes: Sizes,
    num_rows: int,
    num_groups: int,
) -> dict[str, Candidate]:
    """
    The candidates that suit the data, by name, the likeliest winners first.

    :param likelihood: None for Gaussian noise.
    :param num_rows: the number of training rows.
    :param num_groups: as :func:`best_negations` returns it.
    """
    making = _Making(data, likelihood, sizes, num_rows, num_groups)
    return {one.name: one for one in making.all()}


def best_negations(data: PreparedData) -> int:
    """The number of groups of directions to negate that explains most for the same work.

    Candidates are compared by :func:`rank_transforms`, with numbers of points whose cubes add up to
    the same work. 0 if points without negations explain most, or if rows are images or places on
    the globe.
    """
    if data.globe or data.image_shape is not None:
        return 0
    X = data.X[:: max(len(data.X) // ROWS_TO_RANK, 1)][:ROWS_TO_RANK]
    kernel = gpflow.kernels.Matern52(lengthscales=math.sqrt(X.shape[1]))
    errors: dict[int, float] = {}
    for groups in range(min(X.shape[1], MOST_GROUPS) + 1):
        each = round(len(X) / ROWS_OF_A_POINT / 2 ** (groups / 3))
        if each > 0:
            candidate = PrincipalNegation.from_data(X, groups) if groups else None
            (ranked,) = rank_transforms(kernel, [candidate], X, num_inducing=each)
            errors[groups] = ranked.trace_error
    return min(errors, key=lambda groups: errors[groups])


class _Making:
    """What is the same for all candidates of a table."""

    def __init__(
        self,
        data: PreparedData,
        likelihood: Likelihood | None,
        sizes: Sizes,
        num_rows: int,
        num_groups: int,
    ) -> None:
        self._data, self._likelihood, self._num_rows = data, likelihood, num_rows
        self._num_groups = num_groups
        self._count = min(sizes.num_inducing, max(num_rows // 4, 2))
        self._minibatches: dict[str, Any] = {
            "batch_size": min(BATCH_SIZE, num_rows),
            "steps": sizes.steps,
        }
        columns = data.Y.shape[1]
        num_latent = columns if likelihood is None else number_of_latents(likelihood, columns)
        self._latent: dict[str, Any] = {"num_latent": num_latent}

    def all(self) -> list[Candidate]:
        num_columns = self._data.X.shape[1]
        found: list[Candidate] = []
        if self._likelihood is None and self._num_rows <= MOST_ROWS_EXACT:
            found.append(self._of("exact", recipes.exact, {}, "fit", {}))
        if self._data.image_shape is not None:
            return [*found, self._patches(), *self._of_points()]
        if self._data.globe:
            return [*found, self._globe(num_columns), *self._of_points()]
        if num_columns <= MOST_WAVE_COLUMNS:
            waves = {"num_inducing": min(2 * self._count, self._num_rows // 2)}
            found.append(self._collapsed("waves", waves))
        if num_columns <= MOST_COLUMNS:
            found.append(self._collapsed("harmonics", {}, num_inducing=self._count))
        if num_columns > 1:
            found.append(self._effects())
        found += self._of_points()
        if 1 < num_columns <= MOST_COLUMNS and self._likelihood is None:
            own = self._with_categories(2 * self._count)
            recipe = recipes.effects_and_harmonics
            found.append(self._of("effects and harmonics", recipe, own, "fit_sgpr", {}))
        if num_columns <= MOST_COLUMNS:
            found += self._of_minibatches()
        return found

    def _of(
        self,
        name: str,
        recipe: Callable[..., Any],
        arguments: Mapping[str, Any],
        training: str | None,
        training_arguments: Mapping[str, Any],
    ) -> Candidate:
        given, code = self._likelihood, self._data.code
        return Candidate(name, recipe, arguments, training, training_arguments, given, code)

    def _collapsed(self, name: str, arguments: Mapping[str, Any], **training: Any) -> Candidate:
        """Of Gaussian noise in one pass, of other likelihoods in a few."""
        recipe = name.replace(" ", "_")
        if self._likelihood is None:
            return self._of(name, getattr(recipes, recipe), arguments, "fit_sgpr", training)
        own = {**self._latent, **arguments}
        return self._of(name, getattr(recipes, f"{recipe}_of_any"), own, "fit_collapsed", training)

    def _effects(self) -> Candidate:
        own = self._with_categories(self._count)
        if self._likelihood is None:
            return self._of("effects", recipes.effects, own, None, {})
        return self._collapsed("effects", own)

    def _with_categories(self, num_inducing: int) -> dict[str, Any]:
        return {"num_inducing": num_inducing, "categorical": self._data.categorical}

    def _globe(self, num_columns: int) -> Candidate:
        degree = max(int(math.sqrt(2 * self._count)) - 1, 1)
        if num_columns == 3:
            return self._collapsed("globe", {"max_degree": degree})
        own = {"max_degree": degree, "num_inducing": self._count}
        return self._collapsed("globe and effects", own)

    def _patches(self) -> Candidate:
        count = min(self._count, MOST_PATCHES)
        own = {**self._latent, "image_shape": self._data.image_shape, "num_inducing": count}
        return self._of("patches", recipes.patches, own, "fit", self._minibatches)

    def _of_points(self) -> list[Candidate]:
        own = {**self._latent, "num_inducing": self._count}
        found = [
            self._of("points", recipes.points, own, "fit", self._minibatches),
            self._of("orthogonal points", recipes.orthogonal_points, own, "fit", self._minibatches),
        ]
        if self._num_groups:
            of_blocks = {**own, "num_groups": self._num_groups}
            found.append(self._of("blocks", recipes.blocks, of_blocks, "fit", self._minibatches))
        return found

    def _of_minibatches(self) -> list[Candidate]:
        own = {**self._latent, "num_inducing": self._count}
        by_adam = {**self._minibatches, "learning_rate": RATE, "natural_gradient": False}
        by_both = {**self._minibatches, "learning_rate": RATE}
        recipe = recipes.minibatch_harmonics
        return [
            self._of("harmonics with diagonal q", recipe, {**own, "q_diag": True}, "fit", by_adam),
            self._of("harmonics with full q", recipe, {**own, "q_diag": False}, "fit", by_both),
        ]
