"""A made-up table of collisions: as many rows and columns as SUSY (Baldi, Sadowski and Whiteson
2014), on which the paper of variational inducing spherical harmonics trains a classifier.

Rows are independent. As in SUSY, eight columns are measured, and ten follow from them:
size_1, size_2  logarithms of the energies of two particles: normal, correlated by 0.5
eta_1, eta_2    how far along the beam they go: normal
phi_1, phi_2    the directions across it: any angles
missing         the logarithm of the energy that is missing: normal, correlated with the sizes
phi_m           where it is missing: any angle
opening         log(cosh(eta_1 - eta_2) - cos(phi_1 - phi_2) + 0.1)
mass            (size_1 + size_2 + opening) / 2
separation      cos(phi_1 - phi_2)
axial, across   tanh(exp(missing) / 2) times the cosine and the sine of phi_m - phi_1
balance         tanh(size_1 - size_2)
total           log(exp(size_1) + exp(size_2) + exp(missing))
share           exp(missing - total)
blurred         mass with normal noise of deviation 0.5
chance          normal, and of no use

The class is 1 with the probability `probability(X)`: a logistic function of

    `SLOPE` (1.0 sin(2 mass - 1) + 0.8 tanh(missing) + 0.9 axial balance - 0.7 separation share
             + 0.6 exp(-(total - 1.5)^2) cos(phi_2 - phi_m) - 0.5 tanh(eta_1 eta_2))

whose slope is such that the true probabilities have the area under the ROC curve that the best
classifiers of SUSY have, about 0.88.
"""

from __future__ import annotations

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.row_files import Pieces, drawn_in_blocks

COLUMNS = (
    *("size_1", "eta_1", "phi_1", "size_2", "eta_2", "phi_2", "missing", "phi_m"),
    *("opening", "mass", "separation", "axial", "across", "balance", "total", "share"),
    *("blurred", "chance"),
)
TRAIN_ROWS = 5_000_000
TEST_ROWS = 500_000
SLOPE = 1.9


def collisions(start: int, stop: int, *, seed: int = 0, test: bool = False) -> Pieces:
    """Rows `start` to `stop` (excluded) in pieces (X [n, 18], Y [n, 1]); see `drawn_in_blocks`."""
    return drawn_in_blocks(_draw, start, stop, seed=seed, test=test)


def probability(X: Array) -> Array:
    """The probability of class 1, [N], given rows that are not normalised."""
    of = dict(zip(COLUMNS, X.T, strict=True))
    score = (
        np.sin(2 * of["mass"] - 1)
        + 0.8 * np.tanh(of["missing"])
        + 0.9 * of["axial"] * of["balance"]
        - 0.7 * of["separation"] * of["share"]
        + 0.6 * np.exp(-np.square(of["total"] - 1.5)) * np.cos(of["phi_2"] - of["phi_m"])
        - 0.5 * np.tanh(of["eta_1"] * of["eta_2"])
    )
    return np.asarray(1 / (1 + np.exp(-SLOPE * score)))


def _draw(rng: np.random.Generator, number: int) -> tuple[Array, Array]:
    common = rng.normal(size=number)
    size_1, size_2, missing = (
        np.sqrt(0.5) * (common + rng.normal(size=number)) for _ in ("size_1", "size_2", "missing")
    )
    eta_1, eta_2 = rng.normal(size=(2, number))
    phi_1, phi_2, phi_m = rng.uniform(-np.pi, np.pi, size=(3, number))
    separation = np.cos(phi_1 - phi_2)
    opening = np.log(np.cosh(eta_1 - eta_2) - separation + 0.1)
    mass = (size_1 + size_2 + opening) / 2
    reach, angle = np.tanh(np.exp(missing) / 2), phi_m - phi_1
    total = np.log(np.exp(size_1) + np.exp(size_2) + np.exp(missing))
    X = np.stack(
        [
            *(size_1, eta_1, phi_1, size_2, eta_2, phi_2, missing, phi_m),
            *(opening, mass, separation, reach * np.cos(angle), reach * np.sin(angle)),
            *(np.tanh(size_1 - size_2), total, np.exp(missing - total)),
            *(mass + 0.5 * rng.normal(size=number), rng.normal(size=number)),
        ],
        axis=1,
    )
    return X, (rng.random(number) < probability(X))[:, None].astype(float)
