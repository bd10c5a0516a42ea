"""The pictures of docs/explanation. `python -m tools.site.explanation` draws them."""

from __future__ import annotations

from pathlib import Path

import gpflow
import matplotlib.pyplot as plt
import numpy as np

import interdomain as idm

FOLDER = Path(__file__).parents[2] / "docs" / "images"
TYPE = {"font.size": 15, "axes.titlesize": 17, "legend.fontsize": 14}


def projections() -> None:
    """Rows of Kuf and the matrix Kuu, for points, waves and splines."""
    x = np.linspace(0, 1, 400)[:, None]
    kernel = gpflow.kernels.Matern32(lengthscales=0.2)
    box = idm.kernels.Periodized.from_data(kernel, x)
    families = {
        "inducing points": (
            gpflow.inducing_variables.InducingPoints(np.linspace(0, 1, 21)[:, None]),
            kernel,
        ),
        "waves": (idm.inducing_variables.BoxFourierFeatures.for_kernel(box, 21), box),
        "splines": (idm.inducing_variables.SplineFeatures.from_data(x, 21, degree=2), kernel),
    }
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.6), height_ratios=[2, 3])
    for (above, below), (name, (u, prior)) in zip(axes.T, families.items(), strict=True):
        Kuf = np.asarray(gpflow.covariances.Kuf(u, prior, x))
        Kuu = np.abs(np.asarray(gpflow.covariances.Kuu(u, prior)))
        for row in Kuf[1:19:3]:
            above.plot(x, row, linewidth=2)
        above.set(title=name, yticks=[], xticks=[0, 1], xlabel="x")
        shown = np.where(Kuu > 1e-12, np.log10(np.maximum(Kuu, 1e-12)), np.nan)
        below.imshow(shown, cmap="Blues", vmin=np.nanmax(shown) - 6)
        below.set(xticks=[], yticks=[], xlabel="Kuu")
    axes[0, 0].set_ylabel("rows of Kuf")
    figure.tight_layout()
    figure.savefig(FOLDER / "projections.png", dpi=90)


def neighbours_or_features() -> None:
    """Predictions from neighbours and from waves, of a rough and of a noisy function."""
    rng = np.random.default_rng(1)
    X = np.sort(rng.uniform(0, 1, (2000, 1)), axis=0)
    walk = np.cumsum(rng.normal(size=X.shape), axis=0)
    functions = {
        "rough, little noise": ((walk - walk.mean()) / walk.std(), 0.02, 0.4, 0.5),
        "smooth, much noise": (np.sin(12 * X), 1.0, 0.2, 0.8),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
    for axis, (name, (f, noise, low, high)) in zip(axes, functions.items(), strict=True):
        data = X, f + noise * rng.normal(size=f.shape)
        near = idm.models.VecchiaSGPR(data, num_neighbours=20, merge="off", progress=False)
        idm.fit(near, progress=False)
        kernel = gpflow.kernels.Matern52(lengthscales=0.2)
        box = idm.kernels.Periodized.from_data(kernel, X)
        waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(box, 41)
        prior = idm.kernels.FiniteRank(box, waves)
        smooth = idm.models.StructuredSGPR(data, prior, waves, noise_variance=0.1, progress=False)
        idm.fit(smooth, progress=False)
        x = np.linspace(low, high, 800)[:, None]
        seen = (X[:, 0] > low) & (X[:, 0] < high)
        axis.plot(X[seen], data[1][seen], ".", color="0.6", markersize=4, label="rows")
        axis.plot(x, smooth.predict_f(x)[0], color="C1", linewidth=4, label="41 waves")
        axis.plot(x, near.predict_f(x)[0], color="C0", linewidth=2, label="20 neighbours")
        middle = f[seen].mean()
        axis.set_ylim(middle - np.ptp(f[seen]), middle + np.ptp(f[seen]))
        axis.set(title=name, yticks=[], xticks=[low, high], xlabel="x")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(FOLDER / "neighbours_or_features.png", dpi=90)


if __name__ == "__main__":
    with plt.rc_context(TYPE):
        projections()
        neighbours_or_features()
