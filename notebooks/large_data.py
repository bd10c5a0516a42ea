# %% [markdown]
# # Half a million rows in files: how does a model learn from rows that it reads once?
#
# This notebook trains a GP on rows in a file, and then adds a second file without reading the first
# again. The notebook is for readers whose rows do not fit in memory, or arrive in parts.
# `StructuredSGPR` is GPflow's `SGPR` on sums over the rows. If the scaling of the inputs is frozen,
# one pass over the file is enough: training uses the sums only.
#
# A camera measures one colour per pixel, and interpolates the other two colours ("demosaicing").
# Here a GP predicts the green value of a pixel from eight neighbours: four green ones next to it
# and four red ones at distance two. All values are relative to the red value of the pixel. Each
# pixel is a row; two photographs ship with scikit-learn.

# %%
import tempfile
from pathlib import Path
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import interdomain as idm

EVERY = 1  # use every EVERY-th row
MAX_DEGREE = 3
SUBSET = 5_000
STEPS = 200
FOLDER = Path(tempfile.mkdtemp())


# %%
def rows_of(name):
    """The neighbours and the green value of all inner pixels, relative to the pixel's red value."""
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
        np.save(FOLDER / f"{name}-{part}.npy", 10 * array)  # scaled to about one
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
# `fit` trains all parameters on a random subset, and freezes the parameters of the features. It
# reads all rows once, and trains the other parameters on the sums.


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
# ## The second photograph is added
#
# Sums of days, files or machines can be saved, loaded and added. Only new rows are read.

# %%
started = perf_counter()
model.statistics.save(FOLDER / "china.npz")
both = idm.regression.SufficientStatistics.load(FOLDER / "china.npz") + model.accumulate(flower)
joint = make_model(both)  # a model of sums, without rows
gpflow.utilities.multiple_assign(joint, gpflow.utilities.parameter_dict(model))
for parameter in joint.feature_parameters.values():
    gpflow.set_trainable(parameter, False)
idm.fit(joint, steps=STEPS, progress=False)
print(f"{joint.num_data:,} rows; {perf_counter() - started:.1f} s for the second photograph")

# %% [markdown]
# ## Errors on held-out rows of the second photograph


# %%
def errors(model):
    """The root mean squared error, in grey levels."""
    return 25.5 * np.sqrt(np.mean((model.posterior().predict_f(test[0])[0] - test[1]) ** 2))


def linear_errors(data):
    """The error of the best linear interpolation from the same neighbours."""
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
# Compare the blue bars. A model of the first photograph alone, linear or not, is worse on the
# second than the mean of four neighbours. The sums of both photographs remove this error. The model
# is then as good as the best linear interpolation that was fitted to the second photograph.
