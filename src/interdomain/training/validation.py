"""Checks on one row, before anything is compiled, that a model and its data fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
from gpflow.likelihoods import MultiClass, ScalarLikelihood, Softmax, SwitchedLikelihood

from ..covariances.columns import check_inputs


def check_columns(model: Any, columns: Sequence[int | None]) -> None:
    """
    Check that a model works with data that have these numbers of columns.

    :param columns: the numbers of columns of X and of Y; None where it is not known.
    :raises ValueError: if the kernel and the inducing variable do not fit together, or X does not
        fit them, or Y does not fit the likelihood.
    """
    num_inputs, num_outputs = columns
    if num_inputs is not None:
        own = getattr(model, "check_input_dim", None)  # of a deep model: its first layer knows
        check_inputs(model, num_inputs) if own is None else own(num_inputs)
    if num_outputs is not None and hasattr(model, "likelihood"):
        _check_outputs(model, num_outputs)


def _check_outputs(model: Any, num_columns: int) -> None:
    likelihood, num_functions = model.likelihood, _num_functions(model)
    kind = type(likelihood).__name__
    latent = getattr(likelihood, "latent_dim", None)
    if latent is not None and num_functions is not None and latent != num_functions:
        raise ValueError(
            f"model.num_latent_gps: found {num_functions}, but a {kind} likelihood is of {latent} "
            f"functions; build the model with num_latent_gps={latent}."
        )
    expected = getattr(likelihood, "observation_dim", None)
    if isinstance(likelihood, (MultiClass, Softmax)):
        expected = 1
    elif isinstance(likelihood, ScalarLikelihood) and not isinstance(
        likelihood, SwitchedLikelihood
    ):
        expected = num_functions
    if expected is not None and expected != num_columns:
        raise ValueError(
            f"data: Y has {num_columns} columns, but the model and its {kind} likelihood take "
            f"{expected}; pass Y with {expected}, or build the model with another num_latent_gps."
        )


def _num_functions(model: Any) -> int | None:
    """The number of latent functions of the likelihood; None if it is not known."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, gpflow.kernels.LinearCoregionalization):
        return int(np.shape(kernel.W)[0])
    number = getattr(model, "num_latent_gps", None)
    return number if isinstance(number, int) else None
