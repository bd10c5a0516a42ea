"""Checks the ``data`` argument of a fit and turns it into batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from gpflow.likelihoods import Likelihood
from gpflow.models.training_mixins import (
    ExternalDataTrainingLossMixin,
    InternalDataTrainingLossMixin,
)

from .._arguments import check_real_type, filled_matrix, integer, numeric
from .._targets import check_targets, takes_missing
from ..sphere._typing import Array
from ..streaming.rows import MISSING, check_shapes_of_rows
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
    """
    The data that were passed to a fit, checked.

    :param strategy: the strategy among whose replicas batches are divided; None for one device.
    :raises ValueError: if the data do not fit the model, each other, or the batch size.
    """
    likelihood = getattr(model, "likelihood", None)
    if isinstance(model, InternalDataTrainingLossMixin):
        _check_internal(model, data, batch_size)
        if strategy is not None:
            raise ValueError(
                f"strategy: a {type(model).__name__} holds its data, which cannot be spread over "
                "replicas; leave strategy out, or use a model that is given its data, such as "
                "gpflow.models.SVGP."
            )
        own = getattr(model, "data", None)
        arrays = tuple(own) if isinstance(own, (tuple, list)) and len(own) == 2 else None
        if arrays is not None and isinstance(likelihood, Likelihood):
            checked_arrays([np.asarray(part) for part in arrays], likelihood)
        return Batches(arrays)
    if not isinstance(model, ExternalDataTrainingLossMixin):
        raise ValueError(
            f"model: a {type(model).__name__} is neither a gpflow model that is given its data "
            "(ExternalDataTrainingLossMixin) nor one that holds them "
            "(InternalDataTrainingLossMixin); pass a gpflow.models.SVGP, SGPR, GPR or the like."
        )
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
        _check_dataset(data)
        _check_num_data(model, None)
        return DatasetBatches(data, strategy, likelihood)
    X, Y = checked_arrays(data, likelihood)
    if batch_size is not None or getattr(model, "num_data", None) is not None:
        _check_num_data(model, len(X))
    types = types_of(likelihood, Y.dtype)
    if batch_size is None:
        return Batches((X, Y), types)
    remedy = "it is a part of the rows of data, or None for full batches"
    integer("batch_size", batch_size, at_least=1, at_most=len(X), remedy=remedy)
    return Minibatches((X, Y), types, batch_size, seed)


def _check_internal(model: Any, data: Data, batch_size: int | None) -> None:
    kind = type(model).__name__
    if batch_size is not None:
        raise ValueError(
            f"batch_size: a {kind} holds its data and is trained on all of them, found "
            f"{batch_size}; leave batch_size out."
        )
    own = getattr(model, "data", None)
    if data is None or data is own:
        return
    same = (
        isinstance(data, (tuple, list))
        and isinstance(own, (tuple, list))
        and len(data) == len(own)
        and all(
            np.array_equal(np.asarray(d), np.asarray(o)) for d, o in zip(data, own, strict=True)
        )
    )
    if not same:
        raise ValueError(
            f"data: a {kind} holds its data, and those passed are others; pass data=None, or build "
            "the model on the data you want."
        )


def checked_arrays(data: Any, likelihood: Any) -> tuple[AnyNDArray, AnyNDArray]:
    """(X, Y) of numbers that are finite in the types of :func:`types_of`, and targets that the
    likelihood knows; floats are left in the type that they have, and where they are."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError(
            f"data: found {_shown(data)}; pass a pair of arrays (X, Y) or a tf.data.Dataset."
        )
    rule = "a matrix with one row per observation"
    X: AnyNDArray = numeric("data: X", data[0], rule)
    Y: AnyNDArray = numeric("data: Y", data[1], rule)
    check_shapes_of_rows(X, Y)
    types = types_of(likelihood, Y.dtype if Y.dtype.kind in "biuf" else None)
    X, Y = (
        array if array.dtype.kind == "f" else array.astype(dtype, copy=False)
        for array, dtype in zip((X, Y), types, strict=True)
    )
    for name, array, dtype in zip("XY", (X, Y), types, strict=True):
        bad = _not_finite(array, dtype, missing=name == "Y" and takes_missing(likelihood))
        if len(bad):
            remedy = "pass finite values only" + (f"; {MISSING}" if name == "Y" else "")
            raise ValueError(
                f"data: {name} has NaN or infinity in {len(bad)} of {len(array)} rows, the first "
                f"is row {bad[0]}; {remedy}."
            )
    if isinstance(likelihood, Likelihood):
        for rows in _parts(Y):
            check_targets(likelihood, rows)
    return X, Y


def _parts(array: AnyNDArray) -> Iterator[AnyNDArray]:
    """Some rows at a time: all of them may be in a file that memory does not hold twice."""
    return (array[i : i + _ROWS_AT_ONCE] for i in range(0, len(array), _ROWS_AT_ONCE))


def _not_finite(array: AnyNDArray, dtype: Any, *, missing: bool) -> AnyNDArray:
    """The numbers of the rows that are not finite in a type.

    :param missing: Whether NaN is no mistake.
    """
    found = []
    for rows in _parts(array):
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype, copy=False) if np.dtype(dtype).kind == "f" else rows
        bad = np.isinf(rows) if missing else ~np.isfinite(rows)
        found.append(np.any(bad, axis=1))
    return np.flatnonzero(np.concatenate(found))


def _check_dataset(dataset: tf.data.Dataset) -> None:
    elements = dataset.element_spec
    if not (
        isinstance(elements, tuple)
        and len(elements) == 2
        and all(isinstance(spec, tf.TensorSpec) for spec in elements)
    ):
        raise ValueError(
            f"data: the Dataset's elements are {elements}; pass a Dataset of pairs (X, Y)."
        )
    for name, spec in zip("XY", elements, strict=True):
        check_real_type(f"data: {name} of the Dataset", spec)
    if any(spec.shape.rank not in (None, 2) for spec in elements):
        raise ValueError(
            f"data: the Dataset's elements have shapes {elements[0].shape} and "
            f"{elements[1].shape}; pass batches [B, D] and [B, P], such as "
            "tf.data.Dataset.from_tensor_slices((X, Y)).batch(B)."
        )


def _check_num_data(model: Any, found: int | None) -> None:
    """A wrong ``num_data`` would weigh the likelihood wrongly against the KL term."""
    if not hasattr(model, "num_data"):
        return
    if model.num_data is None:
        remedy = "the number of training rows" if found is None else str(found)
        raise ValueError(
            "model.num_data: found None, so that the ELBO of a minibatch would not be scaled to "
            f"all of the data; build the model with num_data={remedy}, or set model.num_data."
        )
    if found is not None and int(model.num_data) != found:
        raise ValueError(
            f"model.num_data: found {int(model.num_data)}, but the data have {found} rows; set "
            f"model.num_data = {found}."
        )


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}" + ("" if shape is None else f" of shape {tuple(shape)}")


def pair_of_matrices(name: str, data: Any) -> tuple[Array, Array]:
    """
    Rows that are held in memory, in ``gpflow.default_float()``.

    :param data: (X ``[n, D]``, Y ``[n, P]``); NaN in Y may stand for a value that is missing, which
        is for the models to say.
    :raises ValueError: unless they are two matrices of finite numbers with as many rows.
    """
    if not (isinstance(data, (tuple, list)) and len(data) == 2):
        raise ValueError(
            f"{name} must be a pair of matrices (X, Y), found {type(data).__name__}; pass two "
            "arrays."
        )
    X = filled_matrix(f"{name}: X", data[0], "a matrix [n, D]")
    Y = filled_matrix(f"{name}: Y", data[1], "a matrix [n, P]", missing=True)
    if len(X) != len(Y):
        raise ValueError(
            f"{name} must have one row of Y for each of X, found {len(Y)} for {len(X)}; pass pairs."
        )
    dtype = gpflow.default_float()
    return X.astype(dtype), Y.astype(dtype)
