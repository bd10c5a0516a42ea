# %% [markdown]
# # What is the temperature between stations, and tomorrow?
#
# This notebook makes maps of any hour, fills gaps and forecasts, with error bars, from hourly
# readings of stations. All data are made up, so that the truth is known.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np

import interdomain as idm
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    FixedPlaces,
    ProductInducingVariables,
    SplineFeatures,
    SumInducingVariables,
)

NUM_STATIONS = 30
NUM_HOURS, AHEAD = 360, 48
NUM_SPLINES = 110
rng = np.random.default_rng(3)

# %% [markdown]
# ## The data
#
# Thirty stations are on a map of 10 x 10 km. The temperature is a sum of weather, which varies in
# space and time, and of a daily cycle, which the stations share. A tenth of the readings are
# missing. One station was broken for two days. A missing reading is an absent row.

# %%
stations = rng.uniform(0, 10, (NUM_STATIONS, 2))
waves, phases = rng.standard_t(5, (2, 400)) / 3, rng.uniform(0, 2 * np.pi, 400)
changes = rng.standard_t(3, 400) / 18


def truth(X):
    hours = X[:, 2]
    weather = np.cos(X[:, :2] @ waves + np.outer(hours, changes) + phases).sum(axis=1)
    cycle = (1.5 + 0.5 * np.sin(hours / 200)) * np.cos(2 * np.pi * (hours - 15) / 24)
    return 12 + 2 * weather / np.sqrt(200) + 2 * cycle


def rows(places, hours):
    return np.c_[np.repeat(places, len(hours), axis=0), np.tile(hours, len(places))]


X = rows(stations, np.arange(float(NUM_HOURS)))
is_first = np.all(X[:, :2] == stations[0], axis=1)
is_gap = is_first & (X[:, 2] > NUM_HOURS - 120) & (X[:, 2] < NUM_HOURS - 72)
X = X[~is_gap & (rng.uniform(size=len(X)) < 0.9)]
Y = (truth(X) + 0.4 * rng.normal(size=len(X)))[:, None]
level, scale = Y.mean(), Y.std()
print(f"{len(X):,} readings")

# %% [markdown]
# ## The model
#
# The kernel is a sum of two products. Weather has a kernel of space times a kernel of time. The
# cycle has a kernel with a period of 24 hours times a slow kernel of time. Both products have the
# same splines of time, whose box ends two days after the last reading.

# %%
splines = SplineFeatures(0, NUM_HOURS + AHEAD, NUM_SPLINES, degree=2)
space = gpflow.kernels.Matern52(lengthscales=3.0, active_dims=[0, 1])
time = gpflow.kernels.Matern32(lengthscales=12.0, active_dims=[2])
base = gpflow.kernels.Matern52(lengthscales=6.0)
daily = idm.kernels.Periodized.cycle(base, 24.0, active_dims=[2])
slow = gpflow.kernels.Matern32(lengthscales=150.0, active_dims=[2])
# There is one variance for each product, and the cycle changes little in the data.
gpflow.set_trainable([time.variance, base.variance, slow.lengthscales], False)

weather = ProductInducingVariables([FixedPlaces.from_data(X, [0, 1]), splines])
cycle = ProductInducingVariables([BoxFourierFeatures.for_kernel(daily, 5), splines])
kernel = space * idm.kernels.FiniteRank(time, splines)
kernel += idm.kernels.FiniteRank(daily * slow, cycle)
features = SumInducingVariables([weather, cycle])
data = X, (Y - level) / scale
model = idm.models.StructuredSGPR(data, kernel, features, noise_variance=0.1, progress=False)
idm.fit(model, progress=False)
print(f"{features.num_inducing:,} features")
print(f"lengthscales: {space.lengthscales.numpy():.1f} km, {time.lengthscales.numpy():.0f} hours")


def predicted(new):
    mean, variance = idm.predict_in_batches(model, new, progress=False)
    return level + scale * mean[:, 0], 1.645 * scale * np.sqrt(variance[:, 0])


# %% [markdown]
# ## A map that moves
#
# The maps show every fourth hour of the last day with readings. Dots are readings of that hour.

# %%
side = np.linspace(0, 10, 40)
pixels = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
frames = NUM_HOURS - 24.0 + np.arange(0, 24, 4)
figure, axes = plt.subplots(2, 6, figsize=(11, 4.2), layout="constrained", sharex=True, sharey=True)
for hour, column in zip(frames, axes.T, strict=True):
    new = rows(pixels, [hour])
    now = X[:, 2] == hour
    colours = {"vmin": 4, "vmax": 20, "cmap": "RdYlBu_r"}
    for ax, values in zip(column, (predicted(new)[0], truth(new)), strict=True):
        shown = ax.pcolormesh(side, side, values.reshape(40, 40), **colours)
    column[0].scatter(*X[now, :2].T, c=Y[now, 0], edgecolors="k", s=14, linewidths=0.5, **colours)
    column[0].set_title(f"{hour % 24:.0f} h")
axes[0, 0].set_ylabel("predicted")
axes[1, 0].set_ylabel("truth")
figure.colorbar(shown, ax=axes, shrink=0.8, label="temperature")
plt.show()

# %% [markdown]
# ## A gap and a forecast
#
# The first station has a gap of two days, and all readings end at the dotted line.

# %%
hours = np.arange(NUM_HOURS - 144.0, NUM_HOURS + AHEAD)
line = rows(stations[:1], hours)
mean, reach = predicted(line)
own = np.all(X[:, :2] == stations[0], axis=1) & (X[:, 2] >= hours[0])
figure, ax = plt.subplots(figsize=(10, 3.6), layout="constrained")
ax.plot(hours, truth(line), "k--", linewidth=1, label="truth")
ax.plot(hours, mean, label="predicted")
ax.fill_between(hours, mean - reach, mean + reach, alpha=0.25, label="90% band")
ax.plot(X[own, 2], Y[own, 0], ".", color="0.4", label="readings")
ax.axvline(NUM_HOURS, color="k", linestyle=":", linewidth=1)
ax.set(xlabel="hours", ylabel="temperature")
figure.legend(loc="outside upper center", ncols=4)
plt.show()

# %% [markdown]
# In the gap the band is narrow, because the stations nearby have readings. After the last reading
# the daily cycle continues, and the band widens until it has the variance of the weather.

# %%
elsewhere = rng.uniform(0, 10, (30, 2))
checks = {
    "between stations": rows(elsewhere, np.arange(0.0, NUM_HOURS, 5)),
    "hours 1 to 6 after the last reading": rows(stations, NUM_HOURS + np.arange(6.0)),
    "hours 7 to 48": rows(stations, NUM_HOURS + np.arange(6.0, AHEAD)),
}
for name, new in checks.items():
    mean, reach = predicted(new)
    error = mean - truth(new)
    inside = np.mean(np.abs(error) < reach)
    print(f"{name}: error {np.sqrt(np.mean(error**2)):.2f}, 90% bands hold {inside:.0%}")
