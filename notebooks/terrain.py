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
# # A map: 124,000 rows, read once
#
# Are waves or inducing points better in the same seconds? Elevations near Jacksboro, Tennessee, on
# a grid of 344 x 403 points; they ship with matplotlib. A tenth is held out at random. A thousand
# waves of a box around the map compete with GPflow's `SVGP` with 500 inducing points.
#
# No parameter of the kernel moves the waves. So one pass over the rows is enough: variance,
# lengthscales and noise are then trained on sums, without the data.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from matplotlib.colors import ListedColormap
from scipy.cluster.vq import kmeans2

import interdomain as idm

NUM_FEATURES = 1080
NUM_POINTS = 500
EVERY = 1  # row and column of the grid
LEAST_SECONDS = 5.0  # for the inducing points

# %%
with get_sample_data("jacksboro_fault_dem.npz") as file:
    grid = file["elevation"].astype(float)[::EVERY, ::EVERY]  # metres
row, column = np.indices(grid.shape)
X = np.stack([column.ravel(), -row.ravel()], axis=1).astype(float)
X = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (grid.reshape(-1, 1) - grid.mean()) / grid.std()
test = np.random.default_rng(0).uniform(size=len(X)) < 0.1
data = X[~test], Y[~test]
print(f"{len(data[0]):,} rows to learn from, {np.count_nonzero(test):,} to test on")


def errors(model):
    """Root mean squared error in metres, and negative log density, of the held-out rows."""
    mean, variance = model.posterior().predict_f(X[test])
    variance += model.likelihood.variance
    squared = np.square(Y[test] - mean)
    nlpd = 0.5 * np.mean(np.log(2 * np.pi * variance) + squared / variance)
    return grid.std() * np.sqrt(squared.mean()), nlpd


# %% [markdown]
# ## One pass, every hyperparameter
#
# The kernel is a Matern-3/2 that repeats beyond the box; the features are the waves that carry most
# of it, and the prior is what they explain (`FiniteRank`). `fit` reads the rows once and does
# the rest on the sums.

# %%
start = perf_counter()
kernel = idm.kernels.Periodized.from_data(
    gpflow.kernels.Matern32(lengthscales=[0.2, 0.2]), data[0], margin=2
)
waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, NUM_FEATURES)
prior = idm.kernels.FiniteRank(kernel, waves)
model = idm.models.StructuredSGPR(data, prior, waves, noise_variance=0.1, progress=False)
fitted = idm.fit(model, progress=False)
seconds = perf_counter() - start
results = [(f"{waves.num_inducing} waves", seconds, *errors(model))]
print(f"{seconds:.1f} s, of which {fitted.pass_seconds:.1f} s for the pass over the rows")

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
left = max(LEAST_SECONDS, seconds) - (perf_counter() - start)
idm.fit(
    stock,
    data,
    steps=100_000,
    batch_size=1_000,
    progress=False,
    optimizer=gpflow.optimizers.NaturalGradient(0.1),
    options={"max_seconds": max(1.0, left)},
)
results.append((f"{NUM_POINTS} inducing points", perf_counter() - start, *errors(stock)))

# %%
print(f"{'':24}{'seconds':>9}{'test RMSE, m':>14}{'test NLPD':>11}")
for name, spent, rmse, nlpd in results:
    print(f"{name:24}{spent:9.1f}{rmse:14.1f}{nlpd:11.3f}")

# %% [markdown]
# Lower is better in both columns. The points do improve when they are given minutes:
# `python -m benchmarks.terrain` follows them for four, in which they do not catch up.
#
# ## What they learned

# %%
mean, variance = model.posterior().predict_f(X)
stock_mean, _ = stock.posterior().predict_f(X)
deviation = grid.std() * np.sqrt(variance)
maps = {
    "elevation": grid,
    results[0][0]: grid.mean() + grid.std() * mean,
    results[1][0]: grid.mean() + grid.std() * stock_mean,
    "standard deviation (waves)": deviation,
}
land = ListedColormap(plt.get_cmap("gist_earth")(np.linspace(0.35, 1, 256)))  # no sea here
figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
for ax, (title, values) in zip(axes, maps.items(), strict=True):
    if title.startswith("standard"):
        colours = {"cmap": "magma", "vmin": 0, "vmax": np.quantile(deviation, 0.98)}
    else:
        colours = {"cmap": land, "vmin": grid.min(), "vmax": grid.max()}
    image = ax.imshow(np.reshape(values, grid.shape), **colours)
    ax.set_title(title, fontsize=12)
    ax.set(xticks=[], yticks=[], xlabel="east")
    if not title.startswith("standard") and title != results[1][0]:
        continue
    figure.colorbar(image, ax=ax, label="metres", shrink=0.9)
axes[0].set_ylabel("north")
plt.show()
