# %% [markdown]
# # Where are points dense? A map of counts by splines
#
# This notebook estimates the intensity of points on a map, such as trees or sightings, with its
# uncertainty. The notebook is for readers with counts in many cells. In a log-Gaussian Cox process,
# the logarithm of the intensity is a GP, and counts in small cells are Poisson. Counts depend on
# the intensity nearby, so local features suit them: thousands of B-splines, each nonzero in only
# three cells of a grid along each column.
#
# The points are made up, so that the true intensity is known: the intensity follows the heights of
# hills near Jacksboro, Tennessee, which ship with matplotlib.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

import interdomain as idm

NUM_POINTS = 20_000
NUM_SPLINES = 60  # in each column

# %%
with get_sample_data("jacksboro_fault_dem.npz") as file:
    height = file["elevation"].astype(float)[:320, :400]
height = height.reshape(80, 4, 100, 4).mean(axis=(1, 3))  # means over 4 x 4 points
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
# both. The prior consists of the splines (`FiniteRank`). A `DualSVGP` works with any likelihood:
# each pass over the cells updates Gaussian sites, which approximate the terms of the likelihood.
# Between passes, the lengthscales are trained without the data. All matrices are sparse.

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
# ## How much do the splines leave unexplained?
#
# A grid that is too coarse blurs the map. `unexplained_share` is the share of the prior variance
# that the splines leave under the trained kernel. `enough` gives the numbers of splines, in each
# column, that leave 5%. `fit` warns if the share exceeds 10%.

# %%
left, enough = splines.unexplained_share(kernel), splines.enough(kernel)
print(f"unexplained: {left:.1%}; grid that leaves 5%: about {enough}")

# %% [markdown]
# ## The intensity and its uncertainty
#
# The logarithm of the intensity is normal: its standard deviation is about the relative error.

# %%
mean, variance = (part.numpy().reshape(counts.shape) for part in model.predict_f(X))
found, deviation = np.exp(mean + variance / 2), np.sqrt(variance)
figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", sharex=True, sharey=True)
titles = ("counts", "estimated intensity", "true intensity", "relative error")
for ax, values, title in zip(axes.flat, (counts, found, rate, deviation), titles, strict=True):
    top = np.quantile(values, 0.99)
    ax.set(title=title, xlabel="column of cells", ylabel="row of cells")
    figure.colorbar(ax.imshow(values, vmin=0, vmax=top, cmap="viridis"), ax=ax, shrink=0.8)
plt.show()
inside = np.abs(np.log(rate) - mean) < 1.645 * deviation
print(f"90% intervals hold the logarithm of the true intensity in {inside.mean():.0%} of the cells")

# %% [markdown]
# Compare the estimated with the true intensity: the estimate is smooth where the counts are noisy.
# The relative error is small where counts are high, and large where most cells are empty.
