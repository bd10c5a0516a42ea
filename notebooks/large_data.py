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
# # Half a million rows in files: can a model learn from rows it never reads again?
#
# A camera's sensor measures one colour per pixel; the other two are interpolated from its
# neighbours ("demosaicing"). Here a Gaussian process learns to do that: the green value of a pixel
# from eight neighbours, four green ones next to it and four red ones at distance two, relative to
# the red value of the pixel itself. Every pixel of a photograph is one row; the two photographs
# ship with scikit-learn.
#
# `StructuredSGPR` is GPflow's `SGPR` on sums over the rows, which may be in a file. With the
# scaling of the inputs frozen, one pass over the file is enough: training touches no data
# afterwards, and sums of other rows can be added.

# %%
import tempfile
from pathlib import Path
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import interdomain as idm

EVERY = 1  # row to take
MAX_DEGREE = 3
SUBSET = 5_000
STEPS = 200
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
    return np.hstack(near + far)[::EVERY], (shifted(green, 0, 0) - centre)[::EVERY]


def to_file(name):
    """The rows in files, opened as memory-mapped arrays."""
    arrays = []
    for part, array in zip("XY", rows_of(name), strict=True):
        np.save(FOLDER / f"{name}-{part}.npy", 10 * array)  # a scale of about one
        arrays.append(np.load(FOLDER / f"{name}-{part}.npy", mmap_mode="r"))
    return tuple(arrays)


china, flower = to_file("china.jpg"), to_file("flower.jpg")
held_out = np.random.default_rng(0).random(len(flower[0])) < 0.1
test = tuple(np.array(array[held_out]) for array in flower)
flower = tuple(np.array(array[~held_out]) for array in flower)
print(f"{len(china[0]):,} rows of one photograph, {len(flower[0]):,} of another")

# %% [markdown]
# ## One call for the first photograph
#
# `fit` trains everything on a random subset, freezes what the features depend on, reads all
# rows once, and trains the rest on the sums.


# %%
def make_model(data):
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.full(8, 0.3))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 8, MAX_DEGREE)
    mean = gpflow.mean_functions.Linear(np.array([[0.25]] * 4 + [[0.0]] * 4))
    return idm.models.StructuredSGPR(
        data, kernel, harmonics, mean_function=mean, noise_variance=0.1, progress=False
    )


model = make_model(china)
fit = idm.fit(model, steps=STEPS, progress=False, options={"subset_size": SUBSET})
print(f"M = {model.inducing_variable.num_inducing} harmonics, N = {model.num_data:,} rows")
print(f"subset {fit.subset_seconds:.1f} s, pass {fit.pass_seconds:.1f} s, all {fit.seconds:.1f} s")

# %% [markdown]
# ## The second photograph joins
#
# The sums can be saved, loaded and added: days, shards, machines. Only the new rows are read.

# %%
started = perf_counter()
model.statistics.save(FOLDER / "china.npz")
both = idm.regression.SufficientStatistics.load(FOLDER / "china.npz") + model.accumulate(flower)
joint = make_model(both)  # of sums alone
gpflow.utilities.multiple_assign(joint, gpflow.utilities.parameter_dict(model))
for parameter in joint.feature_parameters.values():
    gpflow.set_trainable(parameter, False)
idm.fit(joint, steps=STEPS, progress=False)
print(f"{joint.num_data:,} rows; {perf_counter() - started:.1f} s for the second photograph")


# %% [markdown]
# ## Errors on held-out rows of the second photograph


# %%
def errors(model):
    """Root mean squared error, in grey levels."""
    return 25.5 * np.sqrt(np.mean((model.posterior().predict_f(test[0])[0] - test[1]) ** 2))


def linear_errors(data):
    """The best linear interpolation of the same neighbours."""
    weights, *_ = np.linalg.lstsq(np.c_[data[0], np.ones(len(data[0]))], data[1], rcond=None)
    residual = np.c_[test[0], np.ones(len(test[0]))] @ weights - test[1]
    return 25.5 * np.sqrt(np.mean(residual**2))


table = {
    "mean of four": 25.5 * np.sqrt(np.mean((test[0][:, :4].mean(1)[:, None] - test[1]) ** 2)),
    "linear, 1st photograph": linear_errors(china),
    "linear, 2nd photograph": linear_errors(flower),
    "GP, 1st photograph": errors(model),
    "GP, both": errors(joint),
}
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
bars = ax.barh(list(table), list(table.values()), color=["C7"] * 3 + ["C0"] * 2)
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.invert_yaxis()
ax.set(xmargin=0.12, xlabel="test RMSE (grey levels of 255)", title="lower is better")
plt.show()

# %% [markdown]
# What one photograph teaches does not carry over to another: models of the first alone, linear or
# not, are worse than the plain mean of four neighbours. The sums of both make up for it, without
# reading the first again; they are as good as the best linear interpolation of the second alone.
