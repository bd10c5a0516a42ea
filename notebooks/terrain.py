# %% [markdown]
# # A map: which method predicts missing heights best?
#
# This notebook predicts a random tenth of 138,632 heights near Jacksboro, Tennessee, on a grid of
# 344 x 403 points (they ship with matplotlib). The notebook is for readers with rough data and
# little noise, for which the nearest rows are the most informative. `VecchiaSGPR` conditions each
# row on its nearest rows. The baselines are GPflow's `SVGP` with 500 inducing points and as many
# seconds, linear interpolation, and the weighted mean of four heights.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.cluster.vq import kmeans2
from scipy.interpolate import griddata
from scipy.stats import norm
from sklearn.neighbors import KNeighborsRegressor

import interdomain as idm

NUM_POINTS = 500
EVERY = 1  # use every EVERY-th row and column of the grid

# %%
with get_sample_data("jacksboro_fault_dem.npz") as file:
    grid = file["elevation"].astype(float)[::EVERY, ::EVERY]  # metres
row, column = np.indices(grid.shape)
X = np.stack([column.ravel(), -row.ravel()], axis=1).astype(float)
X = (X - X.mean(axis=0)) / X.std(axis=0)
Y = (grid.reshape(-1, 1) - grid.mean()) / grid.std()
test = np.random.default_rng(0).uniform(size=len(X)) < 0.1
data = X[~test], Y[~test]
print(f"{len(data[0]):,} heights to learn from, {np.count_nonzero(test):,} to predict")
print(f"{'':22}{'seconds':>8}{'RMSE, m':>10}{'NLPD':>8}{'in 95%':>8}")


def score(name, start, mean, variance):
    """Print the errors at missing heights, and the share in the 95% band; return the seconds."""
    seconds, deviation = perf_counter() - start, np.sqrt(variance)
    z = (Y[test] - mean) / deviation
    rmse = grid.std() * np.sqrt(np.mean((z * deviation) ** 2))
    nlpd, inside = np.mean(np.log(deviation) - norm.logpdf(z)), np.mean(np.abs(z) < 1.96)
    print(f"{name:22}{seconds:8.1f}{rmse:10.1f}{nlpd:8.2f}{inside:8.1%}")
    return seconds


# %% [markdown]
# ## A GP on the nearest rows

# %%
start = perf_counter()
numbers = {"num_neighbours": 20, "num_prediction_neighbours": 40}
model = idm.models.VecchiaSGPR(data, **numbers, progress=False)
idm.fit(model, progress=False)  # also chooses the kernel
ours = idm.predict_in_batches(model, X[test], method="predict_y", progress=False)
seconds = score("20 neighbours", start, *ours)

# %% [markdown]
# ## Inducing points, for as many seconds
#
# The points start at the centres of k-means. Training uses minibatches and natural gradients.

# %%
start = perf_counter()
some = np.random.default_rng(0).permutation(len(data[0]))[:20_000]
centres, _ = kmeans2(data[0][some], NUM_POINTS, minit="points", seed=0)
kernel, noise = gpflow.kernels.Matern32(lengthscales=[0.2, 0.2]), gpflow.likelihoods.Gaussian(0.1)
stock = gpflow.models.SVGP(kernel, noise, centres, num_data=len(data[0]))
left = max(1.0, seconds - (perf_counter() - start))
natural = gpflow.optimizers.NaturalGradient(0.1)
how = {"optimizer": natural, "options": {"max_seconds": left}, "progress": False}
idm.fit(stock, data, steps=100_000, batch_size=1_000, **how)
_ = score(f"SVGP, {NUM_POINTS} points", start, *stock.predict_y(X[test]))

# %% [markdown]
# ## Interpolation without a model
#
# The variance is the mean squared error at some of the known heights, which are left out for it.


# %%
def linear(X, Y, new):
    inside = griddata(X, Y[:, 0], new, "linear")  # NaN outside of the convex hull
    return np.where(np.isnan(inside), griddata(X, Y[:, 0], new, "nearest"), inside)


def nearest(X, Y, new):
    return KNeighborsRegressor(4, weights="distance").fit(X, Y[:, 0]).predict(new)


checks, known = np.split(np.random.default_rng(0).permutation(len(data[0])), [2_000 // EVERY])
for name, method in (("linear interpolation", linear), ("the nearest four", nearest)):
    start = perf_counter()
    values = method(data[0][known], data[1][known], np.r_[data[0][checks], X[test]])[:, None]
    variance = np.mean((values[: len(checks)] - data[1][checks]) ** 2)
    score(name, start, values[len(checks) :], variance)

# %% [markdown]
# Lower is better; in the last column, closer to 95%. The inducing points improve with more time,
# but do not catch up in four minutes (`python -m benchmarks.terrain`).
#
# ## Maps
#
# The second map is the known heights, completed by predictions. The third map has the predictions
# at every second row and column. The fourth map shows the error of the neighbours at missing
# heights, as root mean squares of 10 x 10 cells.

# %%
filled, error = Y.copy(), np.full(Y.shape, np.nan)
filled[test], error[test] = ours[0], Y[test] - ours[0]


def squares(values):
    height, width = (size // 10 for size in grid.shape)
    cells = grid.std() * values.reshape(grid.shape)[: 10 * height, : 10 * width]
    return np.sqrt(np.nanmean(cells.reshape(height, 10, width, 10) ** 2, axis=(1, 3)))


coarse = X.reshape(*grid.shape, 2)[::2, ::2]
blurred, _ = stock.posterior().predict_f(coarse.reshape(-1, 2))
maps = {
    "elevation": Y.reshape(grid.shape),
    "20 neighbours": filled.reshape(grid.shape),
    f"SVGP, {NUM_POINTS} points": np.reshape(blurred, coarse.shape[:2]),
    "error of the neighbours": squares(error),
}
figure, axes = plt.subplots(2, 2, figsize=(8, 6.6), layout="constrained")
for number, (ax, (title, values)) in enumerate(zip(axes.flat, maps.items(), strict=True)):
    if number < 3:
        values = grid.mean() + grid.std() * values
        image = ax.imshow(values, cmap="terrain", vmin=-300, vmax=grid.max())  # no sea
    else:
        image = ax.imshow(values, cmap="magma", vmin=0, vmax=5)
    ax.set_title(title, fontsize=17)
    ax.set(xticks=[], yticks=[])
    if number % 2:
        bar = figure.colorbar(image, ax=axes[number // 2], shrink=0.9)
        bar.set_label("metres", fontsize=14)
        bar.ax.tick_params(labelsize=13)
plt.show()

# %% [markdown]
# The completed map looks like the elevation; 500 points blur it. The error is about 3 m everywhere,
# and smaller in the flat valley at the right.
