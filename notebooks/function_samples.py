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
# # Where is the maximum? Function samples and Thompson sampling
#
# `model.predict_f_samples` draws values at given rows. `idm.sample_functions` draws
# functions: each can be evaluated anywhere, as often as one likes, and keeps its values; gradients
# with respect to x lead to its maximum. Thompson sampling needs just that: to find the maximum of
# an unknown function, draw a function from the posterior, and measure next where it is largest.

# %%
from collections.abc import Callable
from typing import Any

import gpflow
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

import interdomain as idm

rng = np.random.default_rng(0)

# %% [markdown]
# The function to be maximised, which is measured with noise: several local maxima, and the greatest
# at x = 1.51.

# %%
NOISE = 0.1


def unknown(x: np.ndarray) -> np.ndarray:
    return np.sin(3 * x) * np.exp(-(((x - 1.3) / 1.2) ** 2)) * -1.3 + 0.6 * np.cos(1.7 * x) + x / 4


def measure(x: np.ndarray) -> np.ndarray:
    return unknown(x) + NOISE * rng.normal(size=x.shape)


LOWER, UPPER = -2.0, 3.0
grid = np.linspace(LOWER, UPPER, 400)[:, None]
best = float(np.max(unknown(grid)))
print(f"the maximum is {best:.3f}, at {grid[np.argmax(unknown(grid)), 0]:.2f}")

# %% [markdown]
# ## A model with Fourier features
#
# A Matern-5/2 kernel, and 34 features of an interval about the one of interest, of which
# the prior consists (`FiniteRank`). A sample of the posterior is a sum of these features with
# weights that are drawn from q. The dashed lines are the mean and two standard deviations.

# %%
matern = gpflow.kernels.Matern52(lengthscales=0.7)
features = idm.inducing_variables.VariationalFourierFeatures(LOWER - 1.5, UPPER + 1.5, 15)
kernel = idm.kernels.FiniteRank(matern, features)


def fitted(X: np.ndarray, Y: np.ndarray) -> idm.models.StructuredSGPR:
    return idm.models.StructuredSGPR(
        (X, Y), kernel, features, noise_variance=NOISE**2, progress=False
    )


X = np.array([[-1.7], [-0.4], [2.6]])
Y = measure(X)
model = fitted(X, Y)
functions = idm.sample_functions(model, 12, seed=1)
mean, variance = (value.numpy()[:, 0] for value in model.predict_f(grid))

figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
axis.plot(grid, functions(grid).numpy()[:, :, 0].T, lw=0.8, alpha=0.8)
for sign, label in ((-2, None), (0, "mean and two deviations"), (2, None)):
    axis.plot(grid, mean + sign * np.sqrt(variance), "k--", lw=1, label=label)
axis.plot(X, Y, "ko", label="measurements")
axis.set(xlabel="x", ylabel="f(x)")
axis.set_title("twelve functions of the posterior after three measurements")
axis.legend(loc="upper left")
plt.show()

# %% [markdown]
# ## The maximum of a function
#
# A coarse grid, then gradient steps from its best point: all functions at once, each at a place of
# its own on the diagonal of `functions(x)`.


# %%
@tf.function(autograph=False)
def slopes(functions: Callable[[Any], tf.Tensor], x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.linalg.trace(functions(x)[:, :, 0])
    return tape.gradient(total, x)


def maxima(functions: Callable[[Any], tf.Tensor]) -> np.ndarray:
    x = tf.constant(grid[np.argmax(functions(grid).numpy()[:, :, 0], axis=1)])
    for _ in range(30):
        x = tf.clip_by_value(x + 0.005 * slopes(functions, x), LOWER, UPPER)
    return x.numpy()


# %% [markdown]
# ## Thompson sampling
#
# Each round draws four functions, and measures at the maximum of each. Early functions differ in
# everything and so do their maxima; later ones agree, and measurements gather about the maximum.

# %%
ROUNDS = 8
for round_number in range(ROUNDS):
    functions = idm.sample_functions(fitted(X, Y), 4, seed=10 + round_number)
    x = maxima(functions)
    X, Y = np.concatenate([X, x]), np.concatenate([Y, measure(x)])
    regret = best - float(np.max(unknown(X)))
    print(f"round {round_number + 1}: at {np.sort(x[:, 0]).round(2)}, regret {regret:.4f}")

# %%
model = fitted(X, Y)
mean, variance = (value.numpy()[:, 0] for value in model.predict_f(grid))
figure, axis = plt.subplots(figsize=(9, 4), layout="constrained")
axis.plot(grid, unknown(grid), "C1", label="the unknown function")
axis.plot(grid, mean, "C0", label="posterior mean")
width = 2 * np.sqrt(variance)
axis.fill_between(
    grid[:, 0], mean - width, mean + width, color="C0", alpha=0.2, lw=0, label="two deviations"
)
dots = axis.scatter(X[:, 0], Y[:, 0], c=np.arange(len(X)), cmap="viridis", label="measurements")
figure.colorbar(dots, label="number of the measurement")
axis.set(xlabel="x", ylabel="f(x)")
axis.legend(loc="upper left")
plt.show()
