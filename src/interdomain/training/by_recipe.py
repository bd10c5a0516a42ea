"""``fit`` for every model: those that follow from sums over rows are trained by their recipe."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np
import tensorflow as tf

from .._arguments import integer
from ..models.rows_model import RowsModel
from . import loop
from .collapsed import fit_collapsed
from .results import FitResult
from .sgpr import fit_sgpr

Arguments = ParamSpec("Arguments")


def _by_recipe(fit: Callable[Arguments, FitResult]) -> Callable[Arguments, FitResult]:
    """A fit that leaves models which need a recipe to it."""
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def of_any_model(*args: Arguments.args, **kwargs: Arguments.kwargs) -> FitResult:
        given = signature.bind(*args, **kwargs).arguments
        model = given.pop("model")
        if not isinstance(model, RowsModel) or not model.needs_recipe:
            return fit(*args, **kwargs)
        accepted = inspect.signature(_RECIPES[model.recipe][0]).parameters
        for name in [name for name in given if name not in accepted]:
            value = given.pop(name)
            if value is not signature.parameters[name].default:
                raise ValueError(
                    f"{name}: a {type(model).__name__} is trained on its own rows by "
                    f"interdomain.training.{model.recipe}, which has no {name}; leave it out."
                )
        return _RECIPES[model.recipe][1](model, given)

    return of_any_model


fit = _by_recipe(loop.fit)


def _in_one_pass(model: Any, given: dict[str, Any]) -> FitResult:
    """The fit on the sums over all rows, with the seconds of everything."""
    fitted = fit_sgpr(model, **given)
    return dataclasses.replace(fitted.result, seconds=fitted.seconds)


def _in_a_few_passes(model: Any, given: dict[str, Any]) -> FitResult:
    """The passes as steps: each of them updates q."""
    if "steps" in given:
        given["max_passes"] = integer("steps", given.pop("steps"), at_least=1)
    fitted = fit_collapsed(model, **given)
    folder = given.get("checkpoint_dir")
    return FitResult(
        steps=len(fitted.elbos),
        first_step=0,
        elbos=np.array(fitted.elbos),
        elbo=fitted.elbo,
        metrics=(),
        seconds=fitted.seconds,
        reason="steps" if fitted.reason == "passes" else fitted.reason,
        message=fitted.message,
        checkpoint=None if folder is None else tf.train.latest_checkpoint(str(folder)),
    )


_RECIPES: dict[str, tuple[Callable[..., Any], Callable[..., FitResult]]] = {
    "fit_sgpr": (fit_sgpr, _in_one_pass),
    "fit_collapsed": (fit_collapsed, _in_a_few_passes),
}
