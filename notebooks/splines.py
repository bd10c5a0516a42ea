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
# # Where are they, and how many? A map of counts by splines
#
# Points on a map, such as trees or sightings, say where there are many, and how sure one can be. In
# a log-Gaussian Cox process the logarithm of their intensity is a GP. Counted in small cells, the
# points are Poisson. What is near decides, so the features should be near, too: thousands of
# B-splines, each of which ends after three cells of a grid.
#
# The points here are made up, so that the intensity is known that the model should find: they are
# drawn where the hills near Jacksboro, Tennessee, which ship with matplotlib, are high.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

import interdomain as idm

NUM_POINTS = 20_000
NUM_SPLINES = 60  # along each side

# %%
with get_sample_data("jacksboro_fault_dem.npz") as file:
    height = file["elevation"].astype(float)[:320, :400]
height = height.reshape(80, 4, 100, 4).mean(axis=(1, 3))  # cells of 4 x 4
rate = np.exp(3 * (height - height.mean()) / height.std() / 2)
rate *= NUM_POINTS / rate.sum()
counts = np.random.default_rng(0).poisson(rate)
row, column = np.indices(counts.shape)
X = np.stack([column.ravel(), -row.ravel()], axis=1) / 10.0
empty = np.mean(counts == 0)
print(f"{counts.sum():,} points in {counts.size:,} cells, of which {empty:.0%} are empty")

# %% [markdown]
# ## The model
#
# The kernel is a product of two Matern-3/2 kernels, one for each column; one variance is enough for
# both. The prior is what the splines explain of it (`FiniteRank`). A `DualSVGP` takes any
# likelihood: each pass over the cells finds the Gaussian sites that stand for the counts, and
# between passes the lengthscales are trained without the data. All matrices are sparse.

# %%
start = perf_counter()
kernel = gpflow.kernels.Matern32(active_dims=[0]) * gpflow.kernels.Matern32(active_dims=[1])
gpflow.set_trainable(kernel.kernels[1].variance, False)
splines = idm.inducing_variables.SplineFeatures.from_data(X, NUM_SPLINES, degree=2)
model = idm.models.DualSVGP(
    (X, counts.reshape(-1, 1).astype(float)),
    idm.kernels.FiniteRank(kernel, splines),
    gpflow.likelihoods.Poisson(),
    splines,
    mean_function=gpflow.functions.Constant(np.log(counts.mean())),
    progress=False,
)
fitted = idm.fit(model, progress=False)
print(f"{splines.num_inducing:,} splines, {fitted.steps} passes, {perf_counter() - start:.1f} s")
print(f"lengthscales {[round(float(k.lengthscales.numpy()), 2) for k in kernel.kernels]}")

# %% [markdown]
# ## How much do the splines leave?
#
# A grid that is too coarse blurs the map. The splines know what share of the prior they leave under
# the trained kernel, and how many would leave 5%. `fit` warns where it is more than 10%.

# %%
left, enough = splines.unexplained_share(kernel), splines.enough(kernel)
print(f"left: {left:.1%}; 5% are left by about {enough}")

# %% [markdown]
# ## The intensity, and what is not known of it
#
# The logarithm of the intensity is normal: its deviation is about the relative error.

# %%
mean, variance = (part.numpy().reshape(counts.shape) for part in model.predict_f(X))
found, deviation = np.exp(mean + variance / 2), np.sqrt(variance)
figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", sharex=True, sharey=True)
titles = ("counts", "intensity found", "intensity drawn from", "relative error")
for ax, values, title in zip(axes.flat, (counts, found, rate, deviation), titles, strict=True):
    top = np.quantile(values, 0.99)
    ax.set(title=title, xlabel="column of cells", ylabel="row of cells")
    figure.colorbar(ax.imshow(values, vmin=0, vmax=top, cmap="viridis"), ax=ax, shrink=0.8)
plt.show()
inside = np.abs(np.log(rate) - mean) < 1.645 * deviation
print(f"the logarithm of the true intensity is in 90% bands in {inside.mean():.0%} of the cells")
