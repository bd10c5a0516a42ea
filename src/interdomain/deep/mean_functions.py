"""Mean functions between layers of different widths."""

from __future__ import annotations

import gpflow
import numpy as np
from gpflow.mean_functions import Identity, Linear, MeanFunction

from .._arguments import filled_matrix, integer
from ..sphere._typing import Array


def identity_or_principal(X: Array, width: int) -> MeanFunction:
    """The mean function of a hidden layer (Salimbeni & Deisenroth 2017, section 4), not trainable.

    It is the identity if the layer has as many outputs as inputs. If it has fewer, it returns the
    first principal components of the centred inputs. If it has more, it appends columns of zeros to
    the inputs.

    :param X: The inputs ``[N, D]`` of the layer.
    :param width: The number of outputs.
    :raises ValueError: If X is not a finite matrix, or ``width`` < 1.
    """
    rows = filled_matrix("X", X, "[N, D]")
    width = integer("width", width, at_least=1)
    columns = rows.shape[1]
    if width == columns:
        return Identity()
    if width > columns:
        matrix, offset = np.eye(columns, width), np.zeros(width)
    else:
        centre = rows.mean(axis=0)
        _, _, directions = np.linalg.svd(rows - centre, full_matrices=True)
        matrix = directions[:width].T
        offset = -centre @ matrix
    mean = Linear(matrix, offset)
    gpflow.set_trainable(mean, False)
    return mean
