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
# # Half a million rows, read once
#
# A camera's sensor measures one colour per pixel; the other two are interpolated from its
# neighbours ("demosaicing"). Here a Gaussian process learns to do that: the green value of a pixel
# from eight neighbours, four green ones next to it and four red ones at distance two, as a sensor
# sees them from a red pixel, relative to the red value of the pixel itself. Every pixel of a
# photograph is one row; the two photographs ship with scikit-learn.
#
# `StructuredSGPR` is GPflow's `SGPR` on sums over the rows, which may be in a file. The features of
# spherical harmonics depend on the scaling of the inputs alone. With that frozen, one pass over the
# file is enough: training touches no data afterwards.

# %%
import os
import tempfile
from pathlib import Path
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import interdomain as idm
from interdomain.streaming import SufficientStatistics

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
STRIDE = 40 if SMOKE else 1  # rows to take
MAX_DEGREE = 2 if SMOKE else 3
STEPS = 3 if SMOKE else 200

FOLDER = Path(tempfile.mkdtemp())


# %%
def rows_of(name):
    """Neighbours and green value of all inner pixels, relative to the pixel's red value."""
    image = load_sample_image(name) / 255.0
    red, green = image[..., 0], image[..., 1]
    height, width = red.shape

    def shifted(channel, down, right):
        return channel[2 + down : height - 2 + down, 2 + right : width - 2 + right].reshape(-1, 1)

    centre = shifted(red, 0, 0)
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    near = [shifted(green, *step) - centre for step in steps]
    far = [shifted(red, 2 * down, 2 * right) - centre for down, right in steps]
    return np.hstack(near + far)[::STRIDE], (shifted(green, 0, 0) - centre)[::STRIDE]


def to_file(name):
    """The rows in files, opened as memory-mapped arrays."""
    arrays = []
    for part, array in zip("XY", rows_of(name), strict=True):
        np.save(FOLDER / f"{name}-{part}.npy", 10 * array)  # a scale of about one
        arrays.append(np.load(FOLDER / f"{name}-{part}.npy", mmap_mode="r"))
    return tuple(arrays)


china, flower = to_file("china.jpg"), to_file("flower.jpg")
print(f"{len(china[0]):,} and {len(flower[0]):,} rows of {china[0].shape[1]} columns")

# %% [markdown]
# One in ten rows of the second photograph is kept to test on, chosen at random.

# %%
held_out = np.random.default_rng(0).random(len(flower[0])) < 0.1
test = tuple(np.array(array[held_out]) for array in flower)
flower = tuple(np.array(array[~held_out]) for array in flower)


# %% [markdown]
# ## One call
#
# `fit_sgpr` trains everything on a random subset, freezes what the features depend on, reads all
# rows once, and trains the rest on the sums. The mean function is linear: its
# parameters need no data afterwards either.


# %%
def make_model(data, **arguments):
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.full(8, 0.3))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 8, MAX_DEGREE)
    mean = gpflow.mean_functions.Linear(np.array([[0.25]] * 4 + [[0.0]] * 4))
    return idm.models.StructuredSGPR(
        data, kernel, harmonics, mean_function=mean, noise_variance=0.1, **arguments
    )


model = make_model(china)
fit = idm.training.fit_sgpr(
    model,
    subset_size=500 if SMOKE else 5_000,
    subset_steps=2 if SMOKE else 30,
    steps=STEPS,
    progress=False,
)
print(f"M = {model.inducing_variable.num_inducing} harmonics, N = {model.num_data:,} rows")
print(f"subset {fit.subset_seconds:.1f} s, pass {fit.pass_seconds:.1f} s, all {fit.seconds:.1f} s")
print(f"bound {fit.result.elbo:,.0f} after {fit.result.steps} steps; frozen: {fit.frozen}")

# %% [markdown]
# What does a step cost without data? A factorisation of M x M numbers, whatever N is.

# %%
loss = model.training_loss_closure()
loss()
started = perf_counter()
for _ in range(10):
    loss()
print(f"{(perf_counter() - started) * 100:.1f} ms for the bound of {model.num_data:,} rows")

# %% [markdown]
# ## Statistics are added
#
# The sums over rows, `model.statistics`, can be saved, loaded and added: days, shards, machines.
# Here, the second photograph joins the first. Only its rows are read.

# %%
model.statistics.save(FOLDER / "china.npz")
more = model.accumulate(flower)
both = SufficientStatistics.load(FOLDER / "china.npz") + more
print(f"{both.num_rows:,} rows; {sum(both.seconds.values()):.1f} s in all passes")


# %%
def errors(model):
    """Root mean squared error, in grey levels, and negative log predictive density."""
    posterior = model.posterior()
    mean, variance = posterior.predict_f(test[0])
    density = model.likelihood.predict_log_density(test[0], mean, variance, test[1])
    levels = 25.5 * np.sqrt(np.mean((mean - test[1]) ** 2))
    return levels, -float(np.mean(density))


def from_statistics(statistics):
    """A model of sums alone: no rows. The kernel's scaling is that of the sums."""
    copied = make_model(statistics)
    gpflow.utilities.multiple_assign(copied, gpflow.utilities.parameter_dict(model))
    for parameter in copied.feature_parameters.values():
        gpflow.set_trainable(parameter, False)
    idm.training.fit(copied, steps=STEPS, progress=False)
    return copied


def linear_errors(data):
    """The best linear interpolation of the same neighbours."""
    weights, *_ = np.linalg.lstsq(np.c_[data[0], np.ones(len(data[0]))], data[1], rcond=None)
    residual = np.c_[test[0], np.ones(len(test[0]))] @ weights - test[1]
    return 25.5 * np.sqrt(np.mean(residual**2))


joint = from_statistics(both)
mean_of_four = 25.5 * np.sqrt(np.mean((test[0][:, :4].mean(1, keepdims=True) - test[1]) ** 2))
table = {
    "mean of the four green neighbours": (mean_of_four, None),
    "linear, first photograph": (linear_errors(china), None),
    "linear, second photograph": (linear_errors(flower), None),
    "GP, first photograph": errors(model),
    "GP, both photographs": errors(joint),
}
for name, (levels, density) in table.items():
    print(f"{name:36s} RMSE {levels:.3f} grey levels", end="")
    print("" if density is None else f", NLPD {density:.3f}")

# %% [markdown]
# What one photograph teaches does not carry over to another: models of the first alone, linear or
# not, are worse than the plain mean of four neighbours. With the rows of the second added, without
# reading the first again, the GP is better than the best linear interpolation of the second.
#
# ## Rows come and go
#
# `extend` and `remove` read the rows that change, and nothing else.

# %%
before = joint.elbo()
withdrawn = tuple(array[:1000] for array in flower)
joint.remove(withdrawn)
print(f"{joint.num_data:,} rows, bound {joint.elbo():,.1f}")
joint.extend(withdrawn)
print(f"{joint.num_data:,} rows, bound {joint.elbo():,.1f}, as before: {before:,.1f}")

# %% [markdown]
# ## To serve, or to go on
#
# `to_svgp` is a stock `SVGP` with the optimal q: no data, no statistics.

# %%
svgp = joint.to_svgp()
difference = np.max(np.abs(svgp.predict_f(test[0][:100])[0] - joint.predict_f(test[0][:100])[0]))
print(f"{type(svgp).__module__}.{type(svgp).__name__}, largest difference {difference:.1e}")

# %% [markdown]
# ## What the features depend on
#
# The parameters that a pass depends on are known. When one changes, the sums are made again before
# anything uses them; a model of sums alone says that it cannot.

# %%
print(", ".join(joint.feature_parameters))
joint.kernel.bias_variance.assign(2.0)
try:
    joint.elbo()
except ValueError as error:
    print(error)

# %%
grid = np.linspace(-4, 4, 200)[:, None]
line = np.hstack([grid, np.zeros((200, 7))])  # one neighbour differs from the other pixels
mean, variance = model.predict_f(line)
figure, axes = plt.subplots(figsize=(5, 3))
axes.plot(grid, mean)
band = 2 * np.sqrt(variance[:, 0])
axes.fill_between(grid[:, 0], mean[:, 0] - band, mean[:, 0] + band, alpha=0.3)
axes.plot(grid, grid / 4, "k--", linewidth=1, label="mean of four")
axes.set(xlabel="one green neighbour", ylabel="green value")
axes.legend()
figure.tight_layout()
plt.show()
