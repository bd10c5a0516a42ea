"""One of each kind of transformation, and the order it must have."""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    ImageRotation90,
    ImageTranslation,
    LongitudeShift,
    Negation,
    Orthogonal,
    Permutation,
    PrincipalNegation,
    Product,
    Rotation,
    Translation,
)


class RollThree(CyclicTransform):
    """A user's own: the order, the columns it needs, and ``__call__``."""

    order = 3
    min_input_dim = 3

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.concat([X[..., 2:3], X[..., :2], X[..., 3:]], axis=-1)


def random_rows(num_rows: int, num_columns: int, seed: int = 0) -> np.ndarray:
    normals = np.random.default_rng(seed).normal(size=(num_columns, num_columns))
    return np.linalg.qr(normals)[0][:num_rows]


def block_rotation(*orders: int) -> np.ndarray:
    """Rotations by one T-th of a turn side by side, in a random basis."""
    matrix = np.zeros((2 * len(orders), 2 * len(orders)))
    for i, order in enumerate(orders):
        c, s = np.cos(2 * np.pi / order), np.sin(2 * np.pi / order)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[c, -s], [s, c]]
    basis = random_rows(len(matrix), len(matrix), seed=1)
    return basis.T @ matrix @ basis


# The transformation, its order, and a number of columns it takes.
CASES: dict[str, tuple[Callable[[], CyclicTransform], int, int]] = {
    "negation": (lambda: Negation([2, 0], centre=[1.0, -3.0]), 2, 4),
    "principal": (lambda: PrincipalNegation(random_rows(2, 4), [1.0, 2.0, 0.0, -1.0]), 2, 4),
    "rotation": (lambda: Rotation(np.int64(7), dims=(3, 1), centre=[1.0, 2.0]), 7, 4),
    "orthogonal": (lambda: Orthogonal(block_rotation(3, 4), centre=0.5), 12, 4),
    "permutation": (lambda: Permutation([1, 2, 0, 4, 3, 5]), 6, 6),
    "translation": (lambda: Translation(3, [2, 0], [1.0, 10.0]), 3, 4),
    "longitude": (lambda: LongitudeShift(12), 12, 2),
    "longitude-euclidean": (lambda: LongitudeShift(6, coordinates="euclidean"), 6, 3),
    "flip": (lambda: ImageFlip([2, 3, 2], 1), 2, 12),
    "image-translation": (lambda: ImageTranslation((4, 6), (1, -2)), 12, 24),
    "rotation90": (lambda: ImageRotation90((3, 3)), 4, 9),
    "product": (lambda: Product([Negation(2), Rotation(3), Translation(4, 3, 1.5)]), 24, 4),
    "own": (RollThree, 3, 4),
}

SINGLE = [name for name in CASES if not name.startswith("product")]


def make(name: str) -> tuple[CyclicTransform, int, int]:
    factory, order, num_columns = CASES[name]
    return factory(), order, num_columns
