"""Checks of the ``data`` of a fit, and the batches that they become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from .._arguments import integer
from .._targets import check_number_of_targets, check_targets, takes_missing
from ..core.inputs import check_inputs
from ..sums.row_batches import Rows, check_dataset, numbers_of
from .batches import Batches, DatasetBatches, Minibatches, types_of

_ROWS_AT_ONCE = 2**16

Data: TypeAlias = "tuple[Any, Any] | tf.data.Dataset | None"


def batches_of(
    model: Any,
    data: Data,
    *,
    batch_size: int | None,
    seed: int,
    strategy: tf.distribute.Strategy | None = None,
) -> Batches:
    """The batches of the data that were passed to a fit, after all checks.

    :raises ValueError: if the data do not fit the model, each other, or the batch size.
    """
    likelihood = getattr(model, "likelihood", None)
    if isinstance(model, InternalDataTrainingLossMixin):
        check_internal(model, data, batch_size)
        if strategy is not None:
            raise ValueError(
                f"model: a {type(model).__name__} holds its data, which cannot be spread over "
                "the replicas of a strategy; build it outside of the strategy's scope, or use a "
                "model that is given its data, such as gpflow.models.SVGP."
            )
        held = getattr(model, "data", None)
        if not isinstance(held, (tuple, list)) or len(held) != 2:
            return Batches(None)
        if isinstance(likelihood, Likelihood):
            _checked_arrays(held, likelihood)
        return Batches(tuple(held))
    if data is None:
        raise ValueError(
            f"data: a {type(model).__name__} holds no data, found None; pass (X, Y) or a "
            "tf.data.Dataset of such batches."
        )
    if isinstance(data, tf.data.Dataset):
        if batch_size is not None:
            raise ValueError(
                f"batch_size: a Dataset is used as given, found {batch_size}; leave batch_size "
                "out and pass dataset.batch(batch_size)."
            )
        check_dataset(data)
        _check_num_data(model, None)
        return DatasetBatches(data, model)
    X, Y = _checked_arrays(data, likelihood)
    if batch_size is not None or getattr(model, "num_data", None) is not None:
        _check_num_data(model, len(X))
    types = types_of(likelihood, Y.dtype)
    if batch_size is None:
        return Batches((X, Y), types)
    remedy = "it is a part of the rows of data, or None for full batches"
    integer("batch_size", batch_size, at_least=1, at_most=len(X), remedy=remedy)
    return Minibatches((X, Y), types, batch_size, seed)


def check_internal(model: Any, data: Data, batch_size: int | None) -> None:
    """Check that ``data`` are None or the data of the model, and that there is no batch size."""
    kind, model_data = type(model).__name__, getattr(model, "data", None)
    if batch_size is not None:
        raise ValueError(
            f"batch_size: a {kind} holds its data and is trained on all of them, found "
            f"{batch_size}; leave batch_size out."
        )
    passed, held = (part if isinstance(part, (tuple, list)) else () for part in (data, model_data))
    same = len(passed) == len(held) > 0 and all(map(np.array_equal, passed, held))
    if data is not None and data is not model_data and not same:
        raise ValueError(
            f"data: a {kind} holds its data, and those passed are others; pass data=None, or build "
            "the model on the data you want."
        )


def _checked_arrays(data: Any, likelihood: Any) -> list[AnyNDArray]:
    """X and Y, after checks that numbers are finite and the likelihood allows the targets. Arrays
    of floats are not copied, so that rows may stay in a file."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError(
            f"data: found a {type(data).__name__}; pass a pair of arrays (X, Y), or a "
            "tf.data.Dataset to train on."
        )
    pair = tuple(map(np.asarray, numbers_of(data)))
    missing = takes_missing(likelihood)
    for _, Y in Rows(pair, batch_size=_ROWS_AT_ONCE, progress=False, missing=missing).batches():
        if isinstance(likelihood, Likelihood):
            check_targets(likelihood, Y)
    types = types_of(likelihood, pair[1].dtype)
    return [
        rows if rows.dtype.kind == "f" else rows.astype(dtype, copy=False)
        for rows, dtype in zip(pair, types, strict=True)
    ]


def _check_num_data(model: Any, found: int | None) -> None:
    """Check ``num_data``, which scales the likelihood against the KL term."""
    num_data: Any = getattr(model, "num_data", found)
    if num_data is None and hasattr(model, "num_data"):
        remedy = "the number of training rows" if found is None else str(found)
        raise ValueError(
            "model.num_data: found None, so that the ELBO of a minibatch would not be scaled to "
            f"all of the data; build the model with num_data={remedy}, or set model.num_data."
        )
    if found is not None and int(num_data) != found:
        raise ValueError(
            f"model.num_data: found {int(num_data)}, but the data have {found} rows; set "
            f"model.num_data = {found}."
        )


def check_columns(model: Any, columns: Sequence[int | None]) -> None:
    """Check that a model fits data with these numbers of columns.

    :param columns: the numbers of columns of X and of Y; None if a number is not known.
    :raises ValueError: if kernel and inducing variable do not fit together, X does not fit them, or
        Y does not fit the likelihood.
    """
    num_inputs, num_outputs = columns
    if num_inputs is not None:
        check = getattr(model, "check_input_dim", None)  # a deep model asks its first layer
        check_inputs(model, num_inputs) if check is None else check(num_inputs)
    likelihood = getattr(model, "likelihood", None)
    if num_outputs is None or not isinstance(likelihood, Likelihood):
        return
    num_functions, kernel = getattr(model, "num_latent_gps", None), getattr(model, "kernel", None)
    if isinstance(kernel, gpflow.kernels.LinearCoregionalization):
        num_functions = int(np.shape(kernel.W)[0])
    check_number_of_targets(likelihood, num_functions, num_outputs)
