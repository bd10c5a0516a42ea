"""``load``: predictions with a model that ``save`` wrote."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType

from .._arguments import boolean, numeric
from .formats import FILE, Metadata, as_path
from .predictors import FULL_COV, OF_TARGETS, Predictor


class LoadedModel:
    """A saved model that predicts, with the prediction methods of the original model.

    It is made by :func:`interdomain.serving.load`. The methods are compiled for any number of rows,
    and can be called in a ``tf.function``.

    :ivar metadata: What was saved.
    """

    def __init__(self, module: Any, metadata: Metadata) -> None:
        self.metadata = metadata
        self._module = module

    def __repr__(self) -> str:
        found = self.metadata
        what = ", ".join(name for name in (found.model, found.kernel) if name is not None)
        return (
            f"<LoadedModel of {what}: {found.num_columns} columns, "
            f"{found.num_outputs} outputs, {', '.join(found.functions)}>"
        )

    @property
    def num_columns(self) -> int:
        """The number D of columns of X."""
        return self.metadata.num_columns

    @property
    def num_outputs(self) -> int:
        """The number P of outputs."""
        return self.metadata.num_outputs

    @property
    def predictor(self) -> Predictor:
        """The functions themselves, without checks of their arguments."""
        found = self.metadata
        return Predictor(
            kind=f"loaded {found.model}",
            functions={name: getattr(self._module, name) for name in found.functions},
            dtype=tf.as_dtype(found.dtype),
            num_columns=found.num_columns,
            row_entries=found.row_entries,
            is_compiled=True,
            targets_dtype=tf.as_dtype(found.targets_dtype),
        )

    def predict_f(self, Xnew: TensorType, full_cov: bool = False) -> MeanAndVariance:
        """Mean ``[N, P]`` of f, and its variance ``[N, P]``, or covariance ``[P, N, N]``.

        :param Xnew: ``[N, D]``.
        :raises ValueError: If Xnew has another shape, or ``full_cov`` is True and the model was
            saved without covariances.
        """
        name = FULL_COV if boolean("full_cov", full_cov) else "predict_f"
        mean, variance = self._function(name)(self._inputs(Xnew))
        return mean, variance

    def predict_f_mean(self, Xnew: TensorType) -> tf.Tensor:
        """The mean of f alone, ``[N, P]``.

        :param Xnew: ``[N, D]``.
        :raises ValueError: If Xnew has another shape.
        """
        return self._function("predict_f_mean")(self._inputs(Xnew))

    def predict_y(self, Xnew: TensorType) -> MeanAndVariance:
        """Mean and variance of y, ``[N, P]`` each.

        :param Xnew: ``[N, D]``.
        :raises ValueError: If Xnew has another shape, or there was no likelihood.
        """
        mean, variance = self._function("predict_y")(self._inputs(Xnew))
        return mean, variance

    def predict_log_density(self, data: tuple[TensorType, TensorType]) -> tf.Tensor:
        """The log density of targets, ``[N]``.

        :param data: (Xnew ``[N, D]``, Y ``[N, P]``).
        :raises ValueError: If they have other shapes, or there was no likelihood.
        """
        Xnew, Y = data
        function = self._function(OF_TARGETS)
        return function((self._inputs(Xnew), _as_tensor("Y", Y, self.metadata.targets_dtype)))

    def _function(self, name: str) -> Any:
        if name not in self.metadata.functions:
            shown = "predict_f(full_cov=True)" if name == FULL_COV else name
            remedy = (
                "save the posterior with likelihood=model.likelihood"
                if self.metadata.likelihood is None and name != FULL_COV
                else f"the {self.metadata.model} had none when it was saved"
            )
            raise ValueError(f"{self!r} has no {shown}; {remedy}.")
        return getattr(self._module, name)

    def _inputs(self, Xnew: TensorType) -> tf.Tensor:
        X = _as_tensor("Xnew", Xnew, self.metadata.dtype)
        if X.shape.rank not in (None, 2) or (
            X.shape.rank == 2 and X.shape[1] not in (None, self.num_columns)
        ):
            raise ValueError(
                f"Xnew must be [N, {self.num_columns}], found shape {tuple(X.shape)}; pass the "
                "columns that the model was trained on, in their order."
            )
        return X


def load(path: str | os.PathLike[str]) -> LoadedModel:
    """Load a model that :func:`interdomain.serving.save` wrote.

    Its predictions are those of the original model, up to rounding.

    :param path: The folder.
    :raises ValueError: If the folder holds something else, is damaged, or is of another format.
    """
    folder = as_path(path)
    metadata = Metadata.read(folder)
    try:
        module = tf.saved_model.load(str(folder))
        missing = [name for name in metadata.functions if not hasattr(module, name)]
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"path: {folder} is damaged: {reason}; save the model again.") from error
    if missing:
        raise ValueError(
            f"path: {folder} is damaged: {FILE} names functions that are not there, "
            f"{', '.join(missing)}; save the model again."
        )
    return LoadedModel(module, metadata)


def _as_tensor(name: str, value: Any, dtype: str) -> tf.Tensor:
    if not tf.is_tensor(value):
        value = numeric(name, value, "a matrix with one row per observation")
        return tf.convert_to_tensor(value.astype(dtype, copy=False))
    return value if value.dtype == dtype else tf.cast(value, dtype)
