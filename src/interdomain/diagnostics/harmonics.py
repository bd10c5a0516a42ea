"""Which degrees and columns a set of spherical harmonics covers, and what it explains there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf

from .._arguments import (
    ROWS_OF_A_BATCH,
    Array,
    IntArray,
    filled_matrix,
    finite_array,
    items,
)
from .._progress import aligned
from ..families.sphere.harmonics import SphericalHarmonics
from ..families.sphere.kernel import ZonalKernel, check_zonal
from ..families.sphere.mathematics.dimensions import raises_of
from ..plotting.axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class HarmonicShares:
    """The degrees and columns in which a set of harmonics has variance (:func:`harmonic_shares`).

    When printed, it is a table. All shares are fractions of the prior variance over the rows, or of
    the squared terms of a posterior mean without the constant. The coordinates are the columns in
    the order of the harmonics, the last one being the bias; the first two, which only have a degree
    together, count as one. A harmonic is counted for every coordinate that raises its degree.

    :ivar num_inducing: The number M of harmonics.
    :ivar num_rows: The number of rows.
    :ivar of: What the shares are fractions of, in words.
    :ivar share: The share that all harmonics explain together.
    :ivar degrees: Their degrees, ``[L]``.
    :ivar degree_counts: The number of harmonics of each degree, ``[L]``.
    :ivar degree_shares: The share that the harmonics of each degree explain, ``[L]``.
    :ivar coordinates: The names of the d - 1 coordinates.
    :ivar coordinate_counts: The number of harmonics with a degree in each coordinate, ``[d - 1]``.
    :ivar highest_raises: The largest number of degrees that any of them has in each coordinate,
        ``[d - 1]``.
    :ivar shares: The share by coordinate and degree, ``[d - 1, L]``.
    """

    num_inducing: int
    num_rows: int
    of: str
    share: float
    degrees: tuple[int, ...]
    degree_counts: tuple[int, ...]
    degree_shares: Array = field(repr=False)
    coordinates: tuple[str, ...]
    coordinate_counts: IntArray = field(repr=False)
    highest_raises: IntArray = field(repr=False)
    shares: Array = field(repr=False)

    @property
    def coordinate_shares(self) -> Array:
        """The share explained by the harmonics with a degree in each coordinate, ``[d - 1]``."""
        return np.asarray(np.sum(self.shares, axis=1))

    def __str__(self) -> str:
        degrees, columns = [("degree", "harmonics", "share")], []
        for degree, n, share in zip(
            self.degrees, self.degree_counts, self.degree_shares, strict=True
        ):
            degrees.append((str(degree), f"{n:,}", f"{share:.1%}"))
        counts, shares = self.coordinate_counts, self.coordinate_shares
        for k in np.flatnonzero(counts):
            highest = str(self.highest_raises[k])
            columns.append((self.coordinates[k], f"{counts[k]:,}", highest, f"{shares[k]:.1%}"))
        head = f"{self.num_inducing:,} harmonics explain {self.share:.1%} of {self.of} over"
        lines = [f"{head} {self.num_rows:,} rows", "", *aligned(degrees), ""]
        lines += aligned([("column", "harmonics", "highest", "share"), *columns])
        if not all(counts):
            without = [self.coordinates[k] for k in np.flatnonzero(counts == 0)]
            lines += ["", f"none in: {', '.join(without)}"]
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each column: the share of the harmonics with a degree in it, with one
        colour for each degree.

        :param ax: Where to draw; a new figure by default.
        """
        ax = new_axes() if ax is None else ax
        from matplotlib import colormaps

        # From dark to light, without what is too light on white.
        colours = colormaps["viridis"](np.linspace(0.0, 0.9, max(self.degrees) + 1))
        place, start = np.arange(len(self.coordinates)), np.zeros(len(self.coordinates))
        for degree, shares in zip(self.degrees, self.shares.T, strict=True):
            if degree > 0:  # the constant has none in any column
                label = str(degree) if np.any(shares > 0) else None
                ax.barh(place, shares, left=start, color=colours[degree], label=label)
                start = start + shares
        ax.set_yticks(place, self.coordinates)
        ax.set(xlabel=f"share of {self.of}", ylabel="column with a degree")
        if len(ax.patches):
            ax.legend(title="degree", fontsize="small", ncols=1 + len(self.degrees) // 12)
        return ax


@check_shapes(
    "X: [N, D]",
)
def harmonic_shares(
    harmonics: SphericalHarmonics,
    kernel: ZonalKernel,
    X: TensorType,
    *,
    whitened_mean: TensorType | None = None,
    column_names: Sequence[str] | None = None,
) -> HarmonicShares:
    """How much of the prior variance over some rows a set of harmonics explains, and where.

    The variance of a harmonic is ``variance lambda_l mean_n (r_n^p phi_m(x_n))^2``; the prior
    variance is the mean of ``K(x_n, x_n)``. If all harmonics have a low degree in a column, or few
    have a degree there, the column has a nearly linear effect or none under the prior that the
    harmonics explain.

    To see what the data say, pass ``whitened_mean=model.whitened_mean()`` (of a
    :class:`~interdomain.models.StructuredSGPR`, or a whitened ``q_mu``). The posterior mean is a
    sum of harmonics, and the shares are then those of its squared terms, without the constant. If
    some harmonics are similar on the data, their effect is divided among them.

    >>> import numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).normal(size=[500, 4])
    >>> kernel = idm.kernels.SphericalMatern52(weight_variances=[0.001, 1.0, 0.01, 0.3])
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_data(kernel, X, 60)
    >>> shares = idm.diagnostics.harmonic_shares(harmonics, kernel, X, column_names=list("abcd"))
    >>> print(shares)
    60 harmonics explain 97.5% of the prior variance over 500 rows
    <BLANKLINE>
    degree  harmonics  share
    0               1  30.4%
    1               4  33.4%
    2               8  18.8%
    3              12   8.8%
    4              13   3.9%
    5              15   1.8%
    6               7   0.5%
    <BLANKLINE>
    column  harmonics  highest  share
    a, c            5        1   0.5%
    d              30        3  15.8%
    b              39        5  36.4%
    bias           43        5  40.2%

    :param harmonics: The harmonics: a chosen set or complete degrees.
    :param kernel: Their kernel, with the parameters of the prior.
    :param X: Inputs ``[N, D]``, with all columns, of which ``active_dims`` selects some.
    :param whitened_mean: The mean of q, whitened, ``[M]`` or ``[M, P]``.
    :param column_names: A name for each of the D columns; their numbers by default.
    :raises ValueError: If the kernel is not zonal or lacks one of their degrees, X or the mean is
        not finite or does not fit, or there is not one name for each column.
    """
    check_zonal(kernel)
    rows = filled_matrix("X", X, "a matrix [N, D]")
    coordinates = _coordinates(harmonics, kernel, column_names, rows.shape[1])
    variances, of = _variances(harmonics, kernel, rows), "the prior variance"
    if whitened_mean is not None:
        variances = _squared_terms(harmonics, whitened_mean, variances)
        of = "the squared terms of the posterior mean (without the constant)"

    raises = np.abs(raises_of(harmonics.chains))
    degree = np.eye(len(harmonics.degrees))[harmonics.level_of_each]
    return HarmonicShares(
        num_inducing=harmonics.num_inducing,
        num_rows=len(rows),
        of=of,
        share=float(np.sum(variances)),
        degrees=harmonics.degrees,
        degree_counts=harmonics.multiplicities,
        degree_shares=variances @ degree,
        coordinates=coordinates,
        coordinate_counts=np.count_nonzero(raises, axis=0),
        highest_raises=np.max(raises, axis=0),
        shares=((raises > 0) * variances[:, None]).T @ degree,
    )


def _variances(harmonics: SphericalHarmonics, kernel: ZonalKernel, X: Array) -> Array:
    """What each harmonic explains of the prior variance, ``[M]``."""
    explained, prior = np.zeros(harmonics.num_inducing), 0.0
    for start in range(0, len(X), ROWS_OF_A_BATCH):
        batch = tf.constant(X[start : start + ROWS_OF_A_BATCH], kernel.variance.dtype)
        explained += np.sum(np.square(Kuf(harmonics, kernel, batch).numpy(), dtype=float), axis=1)
        prior += float(np.sum(kernel(batch, full_cov=False).numpy(), dtype=float))
    eigenvalues = kernel.eigenvalues(harmonics.dimension, harmonics.degrees)
    scale = float(kernel.variance.numpy()) * eigenvalues.numpy().astype(float)
    return np.asarray(scale[harmonics.level_of_each] * explained / prior)


def _squared_terms(
    harmonics: SphericalHarmonics, whitened_mean: TensorType, variances: Array
) -> Array:
    """Their shares, ``[M]``, of which the constant has none."""
    mean = finite_array("whitened_mean", whitened_mean, (1, 2), "a vector [M] or a matrix [M, P]")
    if len(mean) != len(variances):
        raise ValueError(
            f"whitened_mean must have {len(variances)} rows, one for each harmonic, found "
            f"{len(mean)}; pass that of a model with these harmonics."
        )
    constant = np.array(harmonics.degrees)[harmonics.level_of_each] == 0
    squares = np.sum(np.square(mean.reshape([len(mean), -1])), axis=1)
    terms = np.where(constant, 0.0, squares * variances)
    total = np.sum(terms)
    return terms / total if total > 0 else terms


def _coordinates(
    harmonics: SphericalHarmonics, kernel: ZonalKernel, names: Sequence[str] | None, count: int
) -> tuple[str, ...]:
    """The names of the coordinates from the second on, the first with it."""
    listed = items("column_names", range(count) if names is None else names, "a list of names")
    if len(listed) != count:
        raise ValueError(
            f"column_names must be {count} names, one for each column of X, found {len(listed)}; "
            "pass the names of those that the kernel does not see, too."
        )
    seen, _ = kernel.slice(tf.range(count)[None], None)
    coordinates = kernel.lift.coordinates([str(listed[column]) for column in seen.numpy()[0]])
    ordered = [*(coordinates[place] for place in harmonics.column_order), coordinates[-1]]
    return (f"{ordered[0]}, {ordered[1]}", *ordered[2:])
