"""Which models fit a table, how large, and the code of each."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpflow.base import RegressionData
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.utilities import deepcopy

from .._arguments import integer
from .._targets import number_of_latents
from . import recipes
from .prepared import PreparedData, checked_likelihood, prepare
from .race import Entrant

_MOST_ROWS_EXACT = 2_000

_MOST_WAVE_COLUMNS = 3

_MOST_COLUMNS = 50
"""For harmonics: with more columns there are too many harmonics of degree two to start from."""

_MOST_GROUPS = 2

_MOST_PATCHES = 100

_BATCH_SIZE = 1_000

STEPS = 3_000
"""The number of training steps with minibatches of candidates at full size."""

_RATE = 0.03
"""Adam's learning rate with harmonics (``benchmarks/any_likelihood``)."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model that is suitable for a data set, with its size and how to train it.

    :ivar name: its name in tables.
    :ivar steps: functions of which each makes what the next one takes, from X, Y, ``likelihood``
        and the ``arguments``; the last one makes the model.
    :ivar arguments: arguments of these functions.
    :ivar training: "fit" for :func:`interdomain.fit`; None if the model is trained already.
    :ivar training_arguments: the arguments of that function.
    :ivar likelihood: the likelihood; None for Gaussian noise.
    :ivar preparation: lines of code that turn the X and Y that were passed into those of the model.
    """

    name: str
    steps: tuple[Callable[..., dict[str, Any]], ...] = field(repr=False)
    arguments: Mapping[str, Any]
    training: str | None
    training_arguments: Mapping[str, Any]
    likelihood: Likelihood | None
    preparation: tuple[str, ...] = field(repr=False)

    @property
    def why(self) -> str:
        """What the model is, and when it is worth trying."""
        models = (recipes.in_one_pass, recipes.in_a_few_passes)
        return str([step.__doc__ for step in self.steps if step not in models][-1])

    @property
    def entrant(self) -> Entrant:
        """The candidate as an entrant of a :func:`~interdomain.race`.

        Each model that it builds has its own copy of the likelihood."""

        def build(data: RegressionData) -> Any:
            likelihood = Gaussian(0.1) if self.likelihood is None else deepcopy(self.likelihood)
            names = {**self.arguments, "X": data[0], "Y": data[1], "likelihood": likelihood}
            for step in self.steps:
                names |= step(**{name: names[name] for name in inspect.signature(step).parameters})
            return names["model"]

        return Entrant(build, self.training_arguments, trained=self.training is None)

    @property
    def code(self) -> str:
        """A script that makes and trains the model, from X and Y as they were passed; and from
        ``likelihood``, if one was passed."""
        lines = [*self.preparation, "", f"# {self.why}"]
        if self.likelihood is None and any(
            "likelihood" in inspect.signature(step).parameters for step in self.steps
        ):
            lines.append("likelihood = gpflow.likelihoods.Gaussian(0.1)")
        lines += [f"{name} = {value}" for name, value in self.arguments.items()]
        lines += map(_body, self.steps)
        if self.training is not None:
            data = ["(X, Y)"] if "batch_size" in self.training_arguments else []
            texts = [f"{name}={value!r}" for name, value in self.training_arguments.items()]
            lines.append(f"idm.fit({', '.join(['model', *data, *texts])})")
        text = "\n".join([*lines, ""])
        kmeans = ["from scipy.cluster.vq import kmeans2"] if "kmeans2(" in text else []
        imports = ["import gpflow", "import numpy as np", *kmeans, "", "import interdomain as idm"]
        return "\n".join([*imports, "", text])


def _body(step: Callable[..., Any]) -> str:
    """The statements of a step, without its docstring and its return."""
    source = textwrap.dedent(inspect.getsource(step))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    first, last = function.body[1], function.body[-1]
    return textwrap.dedent("\n".join(source.splitlines()[first.lineno - 1 : last.lineno - 1]))


def candidates(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    *,
    image_shape: Sequence[int] | None = None,
    num_inducing: int = 500,
) -> dict[str, Candidate]:
    """The models of this library, and GPflow's own, that are suitable for a table, ready to be
    trained.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[300, 2])
    >>> Y = np.sin(5 * X[:, 0] * X[:, 1])
    >>> found = idm.recommending.candidates(X, Y, num_inducing=50)
    >>> list(found)[:4]
    ['exact', 'waves', 'harmonics', 'effects']
    >>> print(found["waves"].code.splitlines()[-1])
    idm.fit(model)

    ``race({name: one.entrant for name, one in found.items()}, (X, Y), 60)`` compares them at this
    size; its X and Y must be standardised already. :func:`recommend` compares small versions, and
    prepares the rows itself.

    :param X: ``[N, D]``, or a data frame; see :func:`recommend`.
    :param Y: ``[N, P]`` or ``[N]``.
    :param likelihood: None for Gaussian noise; see :func:`recommend`.
    :param image_shape: as for :func:`recommend`.
    :param num_inducing: the number of points, harmonics, or features of effects, but at most a
        quarter of the rows. There are twice as many waves, or effects together with harmonics, and
        at most 100 patches.
    :raises ValueError: as :func:`recommend`.
    """
    likelihood = checked_likelihood(likelihood)
    num_inducing = integer("num_inducing", num_inducing, at_least=2)
    data = prepare(X, Y, likelihood, image_shape)
    return candidates_for(data, likelihood, num_inducing, STEPS)


def candidates_for(
    data: PreparedData,
    likelihood: Likelihood | None,
    num_inducing: int,
    steps: int | None = None,
) -> dict[str, Candidate]:
    """The candidates that suit the data, by name, the likeliest winners first.

    :param likelihood: None for Gaussian noise.
    :param num_inducing: the largest number of points, harmonics or features of effects.
    :param steps: the number of training steps with minibatches; None to leave it to a race.
    """
    gaussian, (num_rows, columns), num_targets = likelihood is None, data.X.shape, data.Y.shape[1]
    size = min(num_inducing, max(num_rows // 4, 2))
    latents = num_targets if likelihood is None else number_of_latents(likelihood, num_targets)
    minibatches: dict[str, Any] = {"batch_size": min(_BATCH_SIZE, num_rows)}
    minibatches |= {} if steps is None else {"steps": steps}
    with_q: dict[str, Any] = {"num_latent": latents, "num_inducing": size}

    def collapsed(name: str, prior: Any, sizes: Mapping[str, Any], **how: Any) -> Any:
        """A model of fixed features: of Gaussian noise in one pass, of others in a few."""
        if gaussian:
            return name, (prior, recipes.in_one_pass), sizes, "fit", how
        of_prior = {"num_latent": latents, **sizes}
        return name, (prior, recipes.in_a_few_passes), of_prior, "fit", how

    of_points: list[Any] = [
        ("points", (recipes.points,), with_q, "fit", minibatches),
        ("orthogonal points", (recipes.orthogonal_points,), with_q, "fit", minibatches),
    ]
    if data.image_shape is None:
        blocks = {**with_q, "num_groups": min(columns, _MOST_GROUPS)}
        of_points.append(("blocks", (recipes.blocks,), blocks, "fit", minibatches))
    listed: list[tuple[str, Any, Any, str | None, Any]] = []
    if gaussian and num_rows <= _MOST_ROWS_EXACT:
        listed.append(("exact", (recipes.exact,), {}, "fit", {}))
    if data.image_shape is not None:
        count = {"num_inducing": min(size, _MOST_PATCHES), "image_shape": data.image_shape}
        listed.append(("patches", (recipes.patches,), {**with_q, **count}, "fit", minibatches))
        listed += of_points
    else:
        table: dict[str, Any] = {"num_inducing": size, "categorical": data.categorical}
        if columns <= _MOST_WAVE_COLUMNS:
            twice = {"num_inducing": min(2 * size, num_rows // 2)}
            listed.append(collapsed("waves", recipes.waves, twice))
        if columns <= _MOST_COLUMNS:
            listed.append(collapsed("harmonics", recipes.harmonics, {}, num_inducing=size))
        if columns > 1 and gaussian:
            listed.append(("effects", (recipes.effects,), table, None, {}))
        elif columns > 1:
            listed.append(collapsed("effects", recipes.all_pairs, table))
        listed += of_points
        if columns <= _MOST_COLUMNS and columns > 1 and gaussian:
            parts: Any = recipes.harmonics, recipes.in_one_pass, recipes.and_effects
            both = {**table, "num_inducing": 2 * size}
            listed.append(("effects and harmonics", parts, both, "fit", {}))
        if columns <= _MOST_COLUMNS:
            parts = recipes.harmonics, recipes.in_a_few_passes, recipes.by_minibatches
            for name, q_diag in (("diagonal", True), ("full", False)):
                how = {**minibatches, "optimizer": (None, _RATE) if q_diag else _RATE}
                sizes = {**with_q, "q_diag": q_diag}
                listed.append((f"harmonics with {name} q", parts, sizes, "fit", how))
    return {each[0]: Candidate(*each, likelihood, data.code) for each in listed}
