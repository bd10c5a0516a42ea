"""The shares of the prior variance that spherical harmonics explain, by degree and by column."""

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
    BoolArray,
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
    """The shares of variance of a set of harmonics, by degree and column (:func:`harmonic_shares`).

    Printed, it is a table. The coordinates are the columns in the order of the harmonics, and the
    bias is the last. The first two have only a joint degree, and count as one coordinate. A
    harmonic counts for every coordinate that raises its degree.

    :ivar num_rows: The number of rows.
    :ivar of: The quantity that the shares divide, in words: the prior variance over the rows, or
        the squared terms of a posterior mean without the constant.
    :ivar coordinates: The names of the d - 1 coordinates.
    :ivar shares: The share of each harmonic, ``[M]``.
    :ivar degrees: The degree of each harmonic, ``[M]``.
    :ivar raises: The number of degrees that each coordinate adds to each harmonic, ``[M, d - 1]``.
    """

    num_rows: int
    of: str
    coordinates: tuple[str, ...]
    shares: Array = field(repr=False)
    degrees: IntArray = field(repr=False)
    raises: IntArray = field(repr=False)

    def __str__(self) -> str:
        by_degree = [("degree", "harmonics", "share")]
        for degree in np.unique(self.degrees):
            by_degree.append((str(degree), *self._summed(self.degrees == degree)))
        by_column, without = [("column", "harmonics", "highest", "share")], []
        for name, raises in zip(self.coordinates, self.raises.T, strict=True):
            count, share = self._summed(raises > 0)
            if np.any(raises):
                by_column.append((name, count, str(np.max(raises)), share))
            else:
                without.append(name)
        head = f"{len(self.shares):,} harmonics explain {np.sum(self.shares):.1%} of {self.of} over"
        lines = [f"{head} {self.num_rows:,} rows", "", *aligned(by_degree), "", *aligned(by_column)]
        return "\n".join(lines + ["", f"none in: {', '.join(without)}"] * bool(without))

    def _summed(self, which: BoolArray) -> tuple[str, str]:
        """The number of the selected harmonics and their share, as text."""
        return f"{np.count_nonzero(which):,}", f"{np.sum(self.shares[which]):.1%}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each column: the share of the harmonics with a nonzero degree in it, with
        one colour for each degree.

        :param ax: The axes to draw in; a new figure by default.
        """
        ax = new_axes() if ax is None else ax
        from matplotlib import colormaps

        # Dark to light colours, without colours that are too light on white.
        colours = colormaps["viridis"](np.linspace(0.0, 0.9, np.max(self.degrees) + 1))
        place, start = np.arange(len(self.coordinates)), np.zeros(len(self.coordinates))
        degrees = np.unique(self.degrees[self.degrees > 0])  # the constant has degree 0 everywhere
        for degree in degrees:
            shares = (self.degrees == degree) * self.shares @ (self.raises > 0)
            label = str(degree) if np.any(shares > 0) else None
            ax.barh(place, shares, left=start, color=colours[degree], label=label)
            start = start + shares
        ax.set_yticks(place, self.coordinates)
        ax.set(xlabel=f"share of {self.of}", ylabel="column with a degree")
        if len(degrees):
            ax.legend(title="degree", fontsize="small", ncols=1 + len(degrees) // 12)
        return ax


@check_shapes("X: [N, D]")
def harmonic_shares(
    harmonics: SphericalHarmonics,
    kernel: ZonalKernel,
    X: TensorType,
    *,
    whitened_mean: TensorType | None = None,
    column_names: Sequence[str] | None = None,
) -> HarmonicShares:
    """The shares of the prior variance over some rows that harmonics explain, by degree and column.

    The variance of a harmonic is ``variance lambda_l mean_n (r_n^p phi_m(x_n))^2``; the prior
    variance is the mean of ``K(x_n, x_n)``. If all harmonics have a low degree in a column, f is
    nearly linear in it; if few have a nonzero degree in it, f hardly depends on it.

    To see what the data support, pass ``whitened_mean=model.whitened_mean()`` (of a
    :class:`~interdomain.models.StructuredSGPR`, or a whitened ``q_mu``). The report then has the
    shares of the squared terms of the posterior mean. If harmonics are similar on the data, their
    effect is divided among them.

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
    :param kernel: The kernel of the harmonics, with the parameters of the prior.
    :param X: Inputs ``[N, D]`` with all columns, including those that ``active_dims`` leaves out.
    :param whitened_mean: The mean of q, whitened, ``[M]`` or ``[M, P]``.
    :param column_names: A name for each of the D columns; their numbers by default.
    :return: A report to print; it has ``shares`` ``[M]`` and ``degrees`` ``[M]`` of the harmonics.
    :raises ValueError: If the kernel is not zonal or lacks a degree of the harmonics; if X or the
        mean is not finite or does not fit; or if there is not one name for each column.
    """
    check_zonal(kernel)
    rows = filled_matrix("X", X, "a matrix [N, D]")
    explained, prior = np.zeros(harmonics.num_inducing), 0.0
    for start in range(0, len(rows), ROWS_OF_A_BATCH):
        batch = tf.constant(rows[start : start + ROWS_OF_A_BATCH], kernel.variance.dtype)
        explained += np.sum(np.square(Kuf(harmonics, kernel, batch).numpy(), dtype=float), axis=1)
        prior += float(np.sum(kernel(batch, full_cov=False).numpy(), dtype=float))
    # Kuu is one over the variance times the eigenvalue.
    variances = explained / harmonics.Kuu(kernel).diag_part().numpy().astype(float) / prior
    measured, degrees = "the prior variance", np.array(harmonics.degrees)[harmonics.level_of_each]
    if whitened_mean is not None:
        form = "a vector [M] or a matrix [M, P]"
        mean = finite_array("whitened_mean", whitened_mean, (1, 2), form)
        if len(mean) != len(variances):
            raise ValueError(
                f"whitened_mean must have {len(variances)} rows, one for each harmonic, found "
                f"{len(mean)}; pass that of a model with these harmonics."
            )
        squares = np.sum(np.square(mean.reshape([len(mean), -1])), axis=1)
        variances = np.where(degrees == 0, 0.0, squares * variances)
        variances /= np.sum(variances) or 1.0
        measured = "the squared terms of the posterior mean (without the constant)"
    count = rows.shape[1]
    names = range(count) if column_names is None else column_names
    listed = items("column_names", names, "a list of names")
    if len(listed) != count:
        raise ValueError(
            f"column_names must be {count} names, one for each column of X, found {len(listed)}; "
            "pass the names of columns that the kernel does not use, too."
        )
    seen, _ = kernel.slice(tf.range(count)[None], None)
    found = kernel.lift.coordinates([str(listed[column]) for column in seen.numpy()[0]])
    first, second, *others = (found[place] for place in (*harmonics.column_order, -1))
    coordinates = f"{first}, {second}", *others  # the first two share one
    raises = np.abs(raises_of(harmonics.chains))
    return HarmonicShares(len(rows), measured, coordinates, variances, degrees, raises)
