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
# # Harmonic kernels: many inducing points in small blocks
#
# A kernel that does not change under a transformation of its inputs, such as a rotation by 90
# degrees, is a sum of orthogonal kernels, one for each symmetry a function can have (Sun et al.
# 2021, "Scalable Variational Gaussian Processes via Harmonic Kernel Decomposition"). A sparse GP
# then gives each part inducing points of its own. T blocks of m points cost T factorisations of
# size m; T m points of one GP cost one of size T m.
#
# Four things are shown: the parts of a kernel, how to choose the transformation, what it brings on
# a regression where inducing points are scarce, and how the blocks are placed on devices. The data
# ship with scikit-learn.

# %%
import os
from pathlib import Path
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_sample_image

import interdomain as idm

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
rng = np.random.default_rng(0)
output = Path("notebooks" if Path("notebooks").is_dir() else ".") / "output"
output.mkdir(exist_ok=True)

# %% [markdown]
# ## A kernel and its parts
#
# The squared exponential kernel depends on distances only, so rotations leave it as it is. Those by
# 90 degrees form a group of order 4. Its complex parts of frequencies 1 and 3 are added, which
# leaves three real ones.

# %%
rbf = gpflow.kernels.SquaredExponential(lengthscales=0.7)
quarter_turn = idm.transforms.Rotation(order=4)
kernel = idm.kernels.HarmonicKernel(rbf, quarter_turn)
parts = dict(zip(kernel.frequencies, kernel.kernels, strict=True))

X = rng.normal(size=(50, 2))
difference = np.max(np.abs(sum(part(X) for part in parts.values()) - rbf(X)))
print(f"{len(parts)} real parts, of the frequencies {[t for (t,) in parts]}")
print(f"they sum to the kernel: largest difference {difference:.1e} at {len(X)} random points")

# %% [markdown]
# A function is drawn from each part, on a grid that a quarter turn takes to itself. The draws are
# independent; their sum is a draw from the kernel.

# %%
size = 15 if SMOKE else 31
ticks = np.linspace(-2.0, 2.0, size)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)  # [row, column, (x, y)]


def draw(kernel):
    covariance = kernel(grid.reshape(-1, 2)).numpy()
    eigenvalues, eigenvectors = np.linalg.eigh(covariance)
    weights = np.sqrt(np.maximum(eigenvalues, 0.0)) * rng.normal(size=len(eigenvalues))
    return (eigenvectors @ weights).reshape(size, size)


draws = {t: draw(part) for (t,), part in parts.items()}
for turns, t, sign, words in [
    (1, 0, 1, "the same after a turn by 90 degrees"),
    (2, 1, -1, "the opposite after a turn by 180 degrees"),
    (1, 2, -1, "the opposite after a turn by 90 degrees, the same after 180"),
]:
    error = np.max(np.abs(np.rot90(draws[t], turns) - sign * draws[t]))
    print(f"t = {t}: {words} (to {error:.0e})")

# %%
titles = {0: "t = 0", 1: "t = 1 and 3", 2: "t = 2"}
panels = {titles[t]: values for t, values in draws.items()} | {"their sum": sum(draws.values())}
limit = max(np.max(np.abs(values)) for values in panels.values())
figure, axes = plt.subplots(1, 4, figsize=(12, 3.3))
for axis, (title, values) in zip(axes, panels.items(), strict=True):
    axis.contourf(ticks, ticks, values, np.linspace(-limit, limit, 21), cmap="RdBu_r")
    axis.set(title=title, aspect="equal", xticks=[], yticks=[])
figure.tight_layout()
figure.savefig(output / "harmonic_parts.png", dpi=120)
print(f"figure: {output / 'harmonic_parts.png'}")

# %% [markdown]
# ## Choosing a transformation
#
# Inducing points sit where the data are. In each part a point stands for its whole orbit, so it is
# used well if the transformation takes the data to where there are data as well. The diabetes study
# of Efron et al. (2004) has ten columns, here scaled to between 0 and 1, as is often done: the
# origin is then a corner of the data and not their centre.
#
# `rank_transforms` measures, before any y is seen, how much of the prior variance the inducing
# points leave unexplained (the Nystrom error, per row). The last column below tells why: the
# distance of a transformed row from the nearest row of the data, as a multiple of the distance
# between a row and its nearest neighbour (medians of both).

# %%
X = load_diabetes().data
X = (X - X.min(0)) / (X.max(0) - X.min(0))
mean = X.mean(0)
num_columns = X.shape[1]
halves = list(range(0, num_columns, 2)), list(range(1, num_columns, 2))
Negation = idm.transforms.Negation
PrincipalNegation = idm.transforms.PrincipalNegation
principal = {groups: PrincipalNegation.from_data(X, groups) for groups in (1, 2, 3)}
candidates = {
    "no transformation": None,
    "columns, 2 groups": [Negation(half, centre=mean[half]) for half in halves],
    "columns, 2 groups, about 0": [Negation(half) for half in halves],
    "PCA, 1 group": principal[1],
    "PCA, 2 groups": principal[2],
    "PCA, 2 groups, about 0": [
        PrincipalNegation(axis.directions, centre=0.0) for axis in principal[2].axes
    ],
    "PCA, 3 groups": principal[3],
}
matern = gpflow.kernels.Matern32(lengthscales=np.median(pdist(X)))
m = 20
ranking = idm.diagnostics.rank_transforms(matern, list(candidates.values()), X, num_inducing=m)
(without,) = idm.diagnostics.rank_transforms(matern, [None], X, num_inducing=4 * m)

# %%
own = cdist(X, X)
nearest = np.median(np.min(own + np.diag(np.full(len(X), np.inf)), axis=1))


def distance_to_data(transforms):
    """Of the transformed rows from the nearest row, as a multiple of ``nearest``."""
    group = idm.kernels.HarmonicKernel(matern, transforms).transform
    images = group.orbit(X).numpy()[1:].reshape(-1, num_columns)
    return np.median(np.min(cdist(images, X), axis=1)) / nearest


names = {id(candidate): name for name, candidate in candidates.items()}
print(f"{'':28}{'points':>8}{'Nystrom error':>15}{'distance to data':>18}")
for entry in [*ranking, without]:
    points = f"{entry.num_components} x {entry.num_inducing // entry.num_components}"
    moved = "" if entry.transforms is None else f"{distance_to_data(entry.transforms):.1f}"
    name = names[id(entry.transforms)]
    print(f"{name:28}{points:>8}{entry.trace_error:15.4f}{moved:>18}")

# %% [markdown]
# The negations about the mean put the transformed rows closest to the data and gain the most from
# their blocks. The same negations about the origin take the rows away from the data. The parts are
# then four copies of one another on the data, with a quarter of the variance each, and 4 m points
# explain about as much as m without a transformation: here the centre matters more than the
# directions. 4 m points without one explain more; but they have to be factorised in one piece.

# %% [markdown]
# ## A regression that needs many points
#
# The pixels of a photograph: inputs are their coordinates, the target is the brightness. Four
# fifths of the pixels are for training. The inputs fill a rectangle, so they are symmetric about
# its centre, and two reflections there give four parts. Reflections about a corner, which is where
# pixel coordinates start, suit the same kernel but not the data.
#
# Inducing points start at the centres that k-means finds. A point of a part stands for its four
# images, so those of the HVGP have to cover one quarter only: the rows are folded into it first.
# (Seen from the corner, all pixels are in one quarter as they are.)

# %%
block = 16 if SMOKE else 4
photograph = load_sample_image("china.jpg").mean(axis=-1)
height, width = (length // block for length in photograph.shape)
photograph = photograph[: height * block, : width * block]
photograph = photograph.reshape(height, block, width, block).mean(axis=(1, 3))
photograph = (photograph - photograph.mean()) / photograph.std()

rows, columns = np.mgrid[:height, :width]
X = np.stack([columns.ravel() + 0.5, rows.ravel() + 0.5], axis=1) / height
Y = photograph.reshape(-1, 1)
train, test = np.split(rng.permutation(len(X)), [int(0.8 * len(X))])
data = X[train], Y[train]
print(f"{height} x {width} pixels: {len(train)} to learn from, {len(test)} to test on")

# %%
m = 10 if SMOKE else 100
centre = np.array([width / height, 1.0]) / 2
about_centre = [Negation(0, centre=centre[0]), Negation(1, centre=centre[1])]
about_corner = [Negation(0), Negation(1)]


def centres(number, inputs=X[train], seed=0):
    return KMeans(number, n_init=1, random_state=seed).fit(inputs).cluster_centers_


def arguments():
    return gpflow.kernels.Matern32(lengthscales=0.1), gpflow.likelihoods.Gaussian(0.1)


def svgp(number):
    return gpflow.models.SVGP(*arguments(), centres(number), num_data=len(train))


def hvgp(transforms, fixed_point, **options):
    quarter = fixed_point + np.abs(X[train] - fixed_point)
    Z = np.stack([centres(m, quarter, seed) for seed in range(4)])
    return idm.models.HVGP(*arguments(), Z, transforms, num_data=len(train), **options)


models = {
    f"SVGP, {m}": svgp(m),
    f"SVGP, {4 * m}": svgp(4 * m),
    f"HVGP, 4 x {m}, centre": hvgp(about_centre, centre),
    f"HVGP, 4 x {m}, corner": hvgp(about_corner, 0.0),
}

# %% [markdown]
# All models start from the same kernel and get the same steps on the same minibatches: natural
# gradients for q(u), Adam for the rest, inducing points included. RMSE and NLPD are those of the
# test pixels; the ELBO is a running average; the Nystrom error is that of the start, before any
# brightness is seen. The time of a step leaves out compilation and evaluation.

# %%
STEPS, EVERY = (8, 2) if SMOKE else (150, 30)


def evaluate(step, model):
    entered = perf_counter()
    mean, variance = (moment.numpy() for moment in model.predict_y(X[test]))
    return {
        "rmse": np.sqrt(np.mean((Y[test] - mean) ** 2)),
        "nlpd": -np.mean(norm.logpdf(Y[test], mean, np.sqrt(variance))),
        "entered": entered,
        "left": perf_counter(),
    }


some = X[train[:2000]]
errors, results = {}, {}
for name, model in models.items():
    print(name)
    error = idm.diagnostics.nystrom_trace_error(model.kernel, model.inducing_variable, some)
    errors[name] = error / len(some)
    results[name] = idm.training.fit(
        model,
        data,
        steps=STEPS,
        batch_size=256,
        natural_gradient=0.1,
        callbacks=[evaluate],
        callback_every=EVERY,
        progress=False,
    )

# %%
print(f"{'':24}{'Nystrom error':>14}{'RMSE':>8}{'NLPD':>8}{'ELBO':>9}{'ms a step':>11}")
for name, result in results.items():
    history = result.metrics
    pairs = zip(history[:-1], history[1:], strict=True)
    step_time = np.median([after["entered"] - before["left"] for before, after in pairs]) / EVERY
    print(
        f"{name:24}{errors[name]:14.3f}{history[-1]['rmse']:8.3f}{history[-1]['nlpd']:8.3f}"
        f"{result.elbo:9.0f}{1000 * step_time:11.1f}"
    )

# %%
figure, axes = plt.subplots(2, 3, figsize=(12, 6), layout="constrained")
means = {name: model.predict_f(X)[0].numpy() for name, model in models.items()}
for axis, (name, values) in zip(axes.ravel(), {"photograph": Y, **means}.items(), strict=False):
    axis.imshow(values.reshape(height, width), cmap="gray", vmin=Y.min(), vmax=Y.max())
    axis.set(title=name, xticks=[], yticks=[])
for name, result in results.items():
    steps, nlpds = ([entry[key] for entry in result.metrics] for key in ("step", "nlpd"))
    axes[1, 2].plot(steps, nlpds, ".-", label=name)
axes[1, 2].set(xlabel="step", ylabel="test NLPD")
axes[1, 2].legend(fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
figure.savefig(output / "harmonic.png", dpi=120)
print(f"figure: {output / 'harmonic.png'}")

# %% [markdown]
# About the centre, four blocks of m points leave about the Nystrom error of 4 m points of one GP,
# and predict about as well; the last column has what a step costs. About the corner they explain
# hardly more than m points do. The mean still gains from them (in the full run the RMSE is below
# that of m points), but not the variance, and the NLPD is the worst of all: the transformation has
# to match the inputs.

# %% [markdown]
# ## Blocks on devices
#
# The blocks share nothing but the kernel and the likelihood. With `devices`, each has its
# parameters and operations on a device of its own, dealt out in turn; `report` shows what is where.

# %%
placed = hvgp(about_centre, centre, devices=["CPU:0"])
report = idm.devices.report(placed, (X[:256], Y[:256]))

# %% [markdown]
# With several GPUs, `devices="auto"` takes them all. To try it on a processor, split that into
# logical devices before TensorFlow is first used (in a notebook: in a fresh kernel), and name them:
#
# ```python
# import tensorflow as tf
#
# cpu = tf.config.list_physical_devices("CPU")[0]
# tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
# model = idm.models.HVGP(kernel, likelihood, Z, transforms, devices=["CPU:0", "CPU:1"])
# ```
