# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A mountain range, read once
#
# Elevations near Jacksboro, Tennessee, on a grid of 344 x 403 points; they ship with matplotlib. A
# tenth is held out at random. Two sparse Gaussian processes have the same seconds: a thousand
# Fourier features of a box around the map, and GPflow's `SVGP` with 500 inducing points.
#
# No parameter of the kernel moves the features of the box. So one pass over the rows is enough:
# variance, lengthscales and noise are then trained on sums, without the data.

# %%
import os
from pathlib import Path
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.cluster.vq import kmeans2

import interdomain as idm

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
NUM_FEATURES, NUM_POINTS, EVERY = (60, 20, 8) if SMOKE else (1080, 500, 1)

# %%
with get_sample_data("jacksboro_fault_dem.npz") as file:
    grid = file["elevation"].astype(float)[::EVERY, ::EVERY]
row, column = np.indices(grid.shape)
X = np.stack([column.ravel(), -row.ravel()], axis=1).astype(float)
X = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (grid.reshape(-1, 1) - grid.mean()) / grid.std()
test = np.random.default_rng(0).uniform(size=len(X)) < 0.1
data = X[~test], Y[~test]
print(f"{len(data[0]):,} rows to learn from, {np.count_nonzero(test):,} to test on")


def errors(model):
    """Root mean squared error, and negative log density, of the held-out rows."""
    mean, variance = model.posterior().predict_f(X[test])
    variance += model.likelihood.variance
    squared = np.square(Y[test] - mean)
    nlpd = 0.5 * np.mean(np.log(2 * np.pi * variance) + squared / variance)
    return np.sqrt(squared.mean()), nlpd


# %% [markdown]
# ## One pass, every hyperparameter
#
# The kernel is a Matern-3/2 that repeats beyond the box; the features are the thousand waves that
# carry most of it, and the prior is what they explain (`FiniteRank`). `fit_sgpr` reads the rows
# once and does the rest on the sums.

# %%
start = perf_counter()
kernel = idm.kernels.Periodized.from_data(
    gpflow.kernels.Matern32(lengthscales=[0.2, 0.2]), data[0], margin=2
)
features = idm.inducing_variables.PeriodicFourierFeatures.for_kernel(kernel, NUM_FEATURES)
prior = idm.kernels.FiniteRank(kernel, features)
model = idm.models.StructuredSGPR(data, prior, features, noise_variance=0.1)
fitted = idm.training.fit_sgpr(model)
seconds = perf_counter() - start
results = [(f"{features.num_inducing} Fourier features", seconds, *errors(model))]
lengthscales = ", ".join(f"{value:.2f}" for value in kernel.base_kernel.lengthscales.numpy())
print(f"pass over the rows: {fitted.pass_seconds:.1f} s; lengthscales {lengthscales}")

# %% [markdown]
# ## Inducing points, for as many seconds
#
# Points at the centres of k-means, minibatches, natural gradients: the usual good choice.

# %%
start = perf_counter()
some = np.random.default_rng(0).permutation(len(data[0]))[:20_000]
centres, _ = kmeans2(data[0][some], NUM_POINTS, minit="points", seed=0)
stock = gpflow.models.SVGP(
    gpflow.kernels.Matern32(lengthscales=[0.2, 0.2]),
    gpflow.likelihoods.Gaussian(0.1),
    centres,
    num_data=len(data[0]),
)
idm.training.fit(
    stock,
    data,
    steps=20 if SMOKE else 100_000,
    max_seconds=max(1.0, seconds - (perf_counter() - start)),
    batch_size=1_000,
    natural_gradient=0.1,
)
results.append((f"{NUM_POINTS} inducing points", perf_counter() - start, *errors(stock)))

# %%
print(f"\n{'':24}{'seconds':>9}{'test RMSE':>11}{'test NLPD':>11}")
for name, spent, rmse, nlpd in results:
    print(f"{name:24}{spent:9.1f}{rmse:11.3f}{nlpd:11.3f}")

# %% [markdown]
# ## What they learned

# %%
mean, variance = model.posterior().predict_f(X)
stock_mean, _ = stock.posterior().predict_f(X)
maps = {
    "terrain": Y,
    results[0][0]: mean,
    results[1][0]: stock_mean,
    "standard deviation (features)": np.sqrt(variance),
}
figure, axes = plt.subplots(1, 4, figsize=(16, 4), layout="constrained")
for ax, (title, values) in zip(axes, maps.items(), strict=True):
    if title.startswith("standard"):
        colours = {"cmap": "magma", "vmax": np.quantile(values, 0.98)}  # the edge is far above
    else:
        colours = {"cmap": "terrain", "vmin": Y.min(), "vmax": Y.max()}
    ax.imshow(np.reshape(values, grid.shape), **colours)
    ax.set(title=title, xticks=[], yticks=[])
output = Path("notebooks" if Path("notebooks").is_dir() else ".") / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "terrain.png", dpi=120)
print(f"figure: {output / 'terrain.png'}")
