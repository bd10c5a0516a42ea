"""The text of programs that make a model of X and Y, train it, and predict at new rows."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpflow.likelihoods import Likelihood

from . import group_recipes, outputs, recipes
from .prepared import PreparedData

_NEW_ROWS = "scaler(X_new)"

_MODULES = recipes, group_recipes, outputs
_NAMES = {module.__name__ for module in _MODULES}
"""The modules whose functions are printed in programs."""

_AT = "predict_at"
"""The option of ``fit`` for new rows."""


def program(
    data: PreparedData,
    recipe: Callable[..., Any],
    settings: Mapping[str, Any],
    training: Mapping[str, Any] | None,
) -> str:
    """The text of a program that starts from X and Y as they were passed; and from ``likelihood``,
    ``noise_variance`` and ``X_new``, if they were passed.

    :param data: The rows, with the lines that make X_train and Y_train.
    :param recipe: The function of :mod:`.recipes` that makes the model.
    :param settings: The arguments of the recipe after the rows.
    :param training: The arguments of ``fit``; None if the recipe trains the model.
    """
    lines, rows = [data.code], "(X_train, Y_train)"
    if "likelihood" in settings and data.likelihood_code:
        lines.append(f"likelihood = gpflow.likelihoods.{data.likelihood_code}")
    if data.noise_weights is not None:
        rows = "(X_train, Y_train, Y_std**2 / noise_variance)"
    made = f"{recipe.__name__}({_arguments([rows], settings)})"
    called: list[Callable[..., Any]] = [
        data.targets,
        *filter(inspect.isfunction, settings.values()),
        recipe,
    ]
    if data.noise_weights is not None:
        called.append(recipes.known_noise)
        made = f"known_noise({made})"
    lines.append(f"model = {made}")
    if training is not None:
        first = ["model", *[rows] * ("batch_size" in training)]
        lines.append(f"idm.fit({_arguments(first, training)})")
    make = outputs.PREDICTORS[data.targets]
    predict: Callable[..., Any] = make(*[None] * len(inspect.signature(make).parameters))
    called.append(predict)
    functions = list(dict.fromkeys(each for one in called for each in _with_called(one)))[:-1]
    text = "\n\n\n".join([*map(_source, functions), "\n".join(lines), _source(predict)])
    imports = []
    nodes = [node for module in _MODULES for node in ast.parse(inspect.getsource(module)).body]
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not getattr(node, "level", 0):
            used = [n for n in node.names if re.search(rf"\b{n.asname or n.name}\b", text)]
            node.names = used
            imports += [ast.unparse(node)] * bool(used)
    return "\n".join([*dict.fromkeys(imports), "", "", text, ""])


def _with_called(function: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """All functions that a function calls, at any depth, if they are printed; then the function."""
    for used in inspect.getclosurevars(function).globals.values():
        if inspect.isfunction(used) and used.__module__ in _NAMES:
            yield from _with_called(used)
    yield function


def _source(function: Callable[..., Any]) -> str:
    """The source of a function, without type annotations."""
    body = textwrap.dedent(inspect.getsource(function)).partition('    """')[1:]
    arguments = [
        argument.replace(annotation=argument.empty)
        for argument in inspect.signature(function).parameters.values()
    ]
    return f"def {function.__name__}{inspect.Signature(arguments)}:\n{''.join(body).rstrip()}"


def _arguments(first: list[str], others: Mapping[str, Any]) -> str:
    """The text of the arguments of a call."""
    return ", ".join([*first, *(f"{name}={_text(name, value)}" for name, value in others.items())])


def _text(name: str, value: Any) -> str:
    """An argument as code. Likelihoods and new rows become names of the program's variables."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_text(key, each)}' for key, each in value.items())}}}"
    if inspect.isfunction(value):
        return value.__name__
    return name if isinstance(value, Likelihood) else _NEW_ROWS if name == _AT else repr(value)
