"""Further rows for a trained model: a StructuredSGPR, VecchiaSGPR or GPR."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from gpflow.models import GPR, GPModel

from .. import fit
from .._arguments import Array
from ..models import StructuredSGPR, VecchiaSGPR
from .candidates import MOST_ROWS_EXACT


def with_more_rows(model: GPModel, rows: tuple[Array, ...]) -> GPModel:
    """The model with further rows: a new StructuredSGPR; a VecchiaSGPR or GPR is changed in place.

    A StructuredSGPR adds the sums over the new rows, and trains its parameters on all sums. A
    VecchiaSGPR finds neighbours of the new rows, and keeps its parameters. A GPR is trained again.

    :param model: A StructuredSGPR, VecchiaSGPR or GPR.
    :param rows: X ``[n, D]``, Y ``[n, P]`` and, if the model has them, noise weights ``[n]``.
    :raises ValueError: For other models, and for a GPR of more than 2,000 rows in total.
    """
    X, Y, *weights = rows
    if isinstance(model, VecchiaSGPR):
        model.extend((X, Y), *weights)
        return model
    if isinstance(model, StructuredSGPR):
        added = model.accumulate((X, Y), noise_weights=weights[0] if weights else None)
        model = StructuredSGPR(
            model.statistics + added,
            model.kernel,
            model.inducing_variable,
            mean_function=model.mean_function,
            likelihood=model.likelihood,
        )
    elif isinstance(model, GPR):
        if len(model.data[0]) + len(X) > MOST_ROWS_EXACT:
            raise ValueError(
                f"model must be another one than 'exact' for more than {MOST_ROWS_EXACT:,} rows, "
                "since an exact GP keeps all of them; call partial_fit first with model='auto'."
            )
        pairs: Any = zip(model.data, (X, Y), strict=True)
        model.data = tuple(tf.concat(pair, axis=0) for pair in pairs)
    else:
        raise ValueError(
            f"model must be one to which rows can be added, found a {type(model).__name__}; "
            "call partial_fit first with 'auto' or 'neighbours', or, for Gaussian noise, 'waves', "
            "'splines', 'harmonics' or 'effects'."
        )
    fit(model)
    return model
