"""Initial places for inducing variables of kernels with symmetries."""

from __future__ import annotations

import numpy as np

from ..sphere._typing import Array
from ..transforms import CyclicTransform

_MAX_IMAGES = 10_000


def fold_orbits(transform: CyclicTransform, X: Array, *, seed: int = 0) -> Array:
    """Each row replaced by the image under the group that is nearest to one row of the data.

    :param transform: The group; its elements keep distances.
    :param X: ``[N, D]``.
    :param seed: Chooses the row that images are to be near to.
    :return: ``[N, D]``; rows that are images of each other become equal.
    """
    reference = X[np.random.default_rng(seed).integers(len(X))]
    rows = max(1, _MAX_IMAGES // transform.order)
    folded = []
    for start in range(0, len(X), rows):
        images = transform.orbit(X[start : start + rows]).numpy()
        nearest = np.argmin(np.sum(np.square(images - reference), axis=-1), axis=0)
        folded.append(images[nearest, np.arange(images.shape[1])])
    return np.concatenate(folded)
