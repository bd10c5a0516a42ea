# %% [markdown]
# # What do hourly sums, means of districts and slopes say about a function?
#
# This notebook learns functions from data that are not values of the function. It is for readers
# whose rows are sums over time bins, means over regions, or slopes from a simulator. The pictures
# show a rate at five minutes from hourly sums, a map from means of districts, and a curve from
# values and slopes. All data are made up, so that the truth is known.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np

import interdomain as idm
from interdomain.functionals import Areas, Derivative, Mean, Value

rng = np.random.default_rng(0)
NUM_DAYS = 40
NUM_WAVES = 800
NUM_SPLINES = 22


def trained(data, prior, functionals, features):
    rows = idm.kernels.Functional(prior, functionals)
    model = idm.models.StructuredSGPR(data, rows, features, noise_variance=0.01, progress=False)
    idm.fit(model, progress=False)
    return model


# %% [markdown]
# ## A rate at five minutes, from hourly sums
#
# A sensor adds up a rate for an hour, and reports the sum. The rate has a peak every morning, and a
# part that drifts within hours. Time is in hours, so that the sum over a bin equals its mean.


# %%
def daily(hours):
    return 3 * np.exp(-(((hours % 24) - 8) ** 2)) + np.cos(2 * np.pi * (hours - 14) / 24)


fine = np.arange(1 / 24, 24 * NUM_DAYS, 1 / 12)  # the middles of five minutes
frequencies, phases = rng.standard_t(3, size=300) / 6, rng.uniform(0, 2 * np.pi, 300)
rate = 5 + daily(fine) + np.cos(np.outer(fine, frequencies) + phases).sum(axis=1) / 20
hours = np.arange(24 * NUM_DAYS) + 0.5
sums = rate.reshape(-1, 12).mean(axis=1) + 0.05 * rng.normal(size=len(hours))

# %% [markdown]
# The prior is a sum of two kernels: a function of the hour of the day, which repeats every day, and
# a Matern-3/2 process of time. X holds time, the hour of the day, and the number of the functional.
# `Mean([1, 1])` averages over an hour in both columns. For a sum of functions of one column each,
# this equals the mean along time.


# %%
def with_hour(times, functional):
    return np.c_[times, times % 24, np.full(len(times), functional)]


cycle = idm.kernels.Periodized(gpflow.kernels.Matern52(lengthscales=3.0), 0, 24, active_dims=[1])
base = gpflow.kernels.Matern32(lengthscales=6.0)
process = idm.kernels.Periodized.from_data(base, fine[:, None], active_dims=[0])
features = idm.inducing_variables.BoxFourierFeatures
parts = [features.for_kernel(cycle, 61), features.for_kernel(process, NUM_WAVES)]
prior = idm.kernels.FiniteRank(cycle, parts[0]) + idm.kernels.FiniteRank(process, parts[1])
waves, level = idm.inducing_variables.SumInducingVariables(parts), sums.mean()
data = with_hour(hours, 0), (sums - level)[:, None]
model = trained(data, prior, [Mean([1.0, 1.0]), Value()], waves)
mean, variance = (part.numpy()[:, 0] for part in model.predict_f(with_hour(fine, 1)))
mean, reach = level + mean, 1.645 * np.sqrt(variance)
print(f"the 90% bands hold the rate at {np.mean(np.abs(mean - rate) < reach):.0%} of the times")

few = (fine > 48) & (fine < 72)
figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
ax.stairs(sums[48:72], np.arange(48, 73), baseline=None, color="0.5", label="hourly sums")
ax.plot(fine[few], rate[few], "k--", linewidth=1, label="true rate")
ax.plot(fine[few], mean[few], label="predicted rate")
ax.fill_between(fine[few], (mean - reach)[few], (mean + reach)[few], alpha=0.25, label="90% band")
ax.set(xlabel="time in hours", ylabel="rate per hour", title="the third day")
ax.legend()
plt.show()

# %% [markdown]
# Look at the peak in the morning: like the true rate, the predicted rate exceeds all hourly sums.
#
# ## A map, from means of districts
#
# `Areas` gets pixels, and the number of each pixel's district. The baseline uses the mean of a
# district as a value at its middle.

# %%
side = np.linspace(0.01, 0.99, 50)
pixels = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
hills = rng.normal(size=(40, 2)) * 9, rng.uniform(0, 2 * np.pi, 40)
truth = np.cos(pixels @ hills[0].T + hills[1]).sum(axis=1) / np.sqrt(20)
seats = rng.uniform(size=(150, 2)) ** 1.5  # larger districts in the north-east
nearest = np.square(pixels[:, None] - seats).sum(axis=2).argmin(axis=1)
_, district, counts = np.unique(nearest, return_inverse=True, return_counts=True)
means = np.bincount(district, truth) / counts + 0.02 * rng.normal(size=len(counts))
middles = np.stack([np.bincount(district, column) / counts for column in pixels.T], axis=1)
numbers = np.c_[np.arange(len(counts)), np.zeros(len(counts))]  # the second input is not used

maps = {"data: means of districts": means[district]}
rows = {"as means": (numbers, Areas(pixels, regions=district)), "as values": (middles, Value())}
for name, (places, functional) in rows.items():
    kernel = gpflow.kernels.Matern32(active_dims=[0], lengthscales=0.2)
    kernel *= gpflow.kernels.Matern32(active_dims=[1], lengthscales=0.2)
    splines = idm.inducing_variables.SplineFeatures([0, 0], [1, 1], NUM_SPLINES, degree=2)
    data = np.c_[places, np.zeros(len(counts))], means[:, None]
    model = trained(data, idm.kernels.FiniteRank(kernel, splines), [functional, Value()], splines)
    maps[f"prediction, {name}"] = model.predict_f(np.c_[pixels, np.ones(len(pixels))])[0].numpy()[
        :, 0
    ]

figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained", sharey=True)
for ax, (title, values) in zip(axes, {"truth": truth, **maps}.items(), strict=True):
    shown = ax.pcolormesh(side, side, np.reshape(values, [50, 50]), vmin=-2.5, vmax=2.5)
    ax.set(title=title, xlabel="east", ylabel="north")
figure.colorbar(shown, ax=axes, shrink=0.8)
plt.show()
for name, values in maps.items():
    print(f"{name}: an error of {np.sqrt(np.mean((values - truth) ** 2)):.2f}")

# %% [markdown]
# Compare the highest hill and the deepest hollow. Means of districts are less extreme than values,
# so the map of values is too flat. The map of means has half of its error.
#
# ## A curve, from values and slopes

# %%
x, places = np.linspace(0, 10, 400), rng.uniform(0, 10, 8)
X = np.c_[np.tile(places, 2), np.repeat([0, 1], 8)]
Y = np.r_[np.sin(1.5 * places) + 0.3 * places, 1.5 * np.cos(1.5 * places) + 0.3][:, None]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, count, title in zip(axes, (8, 16), ("8 values", "8 values and 8 slopes"), strict=True):
    prior = gpflow.kernels.SquaredExponential(variance=4.0)
    rows = idm.kernels.Functional(prior, [Value(), Derivative(0)])
    model = gpflow.models.GPR((X[:count], Y[:count]), rows, noise_variance=1e-4)
    mean, variance = (part.numpy()[:, 0] for part in model.predict_f(np.c_[x, np.zeros(400)]))
    band = mean + 1.645 * np.sqrt(variance) * [[-1], [1]]
    ax.plot(x, np.sin(1.5 * x) + 0.3 * x, "k--", linewidth=1, label="truth")
    ax.plot(x, mean, label="mean")
    ax.fill_between(x, *band, alpha=0.25, label="90% band")
    ax.plot(places, Y[:8], "o", label="values")
    ax.set(title=title, xlabel="x", ylabel="f")
    ax.legend(fontsize="small")
plt.show()

# %% [markdown]
# Both models have the same kernel and places. Slopes help most where places are far apart.
