"""The features of rows under one linear functional, for any inducing variable and kernel."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .columns import select_columns
from .family import InterDomainInducingVariables
from .functionals import LinearFunctional, Places, Value
from .pairs import as_family

_SEVERAL = 1_000
"""The number of features that is assumed if it is not known before the graph runs."""


def acted_features(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    functional: LinearFunctional,
    places: Places,
    *,
    in_domain: bool = False,
) -> tf.Tensor:
    """The functional of the features, ``cov(u, L f)``, at places, ``[M, n]``.

    :param in_domain: Whether the places are known to be in the features' domains.
    """
    family, base = as_family(inducing_variable, kernel)
    parts = [
        weight * _acted(family, base, part, places, in_domain=in_domain)
        for weight, part in functional.terms
    ]
    return parts[0] if len(parts) == 1 else tf.add_n(parts)


def _acted(
    family: InterDomainInducingVariables,
    kernel: Kernel,
    functional: LinearFunctional,
    places: Places,
    *,
    in_domain: bool,
) -> tf.Tensor:
    covariances = family.Kuf_in_domain if in_domain else family.Kuf
    if isinstance(functional, Value):
        return covariances(kernel, places.inputs)
    closed_form = family.acted_Kuf_in_domain if in_domain else family.acted_Kuf
    closed = closed_form(kernel, functional, places)
    if closed is not None:
        return closed
    number = family.num_inducing
    size = number if isinstance(number, int) else _SEVERAL

    def features(inputs: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matrix_transpose(covariances(kernel, inputs))

    return tf.linalg.matrix_transpose(functional.act(features, places, size))


def as_seen(
    functional: LinearFunctional, kernel: Kernel, places: Places
) -> tuple[LinearFunctional | None, Places]:
    """The functional and the places in the columns that a kernel selects among the inputs. None for
    the functional if the functional of all functions of these columns is zero."""
    columns = np.arange(int(places.inputs.shape[1]))[kernel.active_dims]
    inputs = select_columns(kernel, places.inputs)
    return functional.seen_by(columns), Places(inputs, places.columns)
