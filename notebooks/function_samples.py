# %% [markdown]
# # Where is the maximum? Function samples and Thompson sampling
#
# This notebook finds the maximum of an unknown function by Thompson sampling: draw a function from
# the posterior, and measure next at its maximum. The notebook is for readers who need whole
# functions from a posterior, for instance in Bayesian optimisation. `model.predict_f_samples` draws
# values at given rows. `idm.sample_functions` draws functions. A drawn function can be evaluated
# anywhere, and as often as you like. Its values stay the same, and it has gradients with respect to
# x.

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
# The unknown function is measured with noise. It has several local maxima; the largest is at
# x = 1.51.

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
# The kernel is a Matern-5/2. The prior consists of 34 Fourier features (`FiniteRank`) of an
# interval that is wider than the plot. A sample of the posterior is a sum of these features, with
# weights drawn from q.

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
# The dashed lines are the posterior mean and two standard deviations around it. All draws agree
# near the three measurements, and differ elsewhere.
#
# ## The maximum of a function
#
# The search starts at the best point of a coarse grid and takes gradient steps, for all functions
# at once. Function i is evaluated at its own place x[i]: the diagonal of `functions(x)`.


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
# Each round draws four functions, and measures at the maximum of each. Early functions differ, and
# so do their maxima. Later functions agree, and the measurements gather at the maximum.

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

# %% [markdown]
# Late measurements (yellow) lie near the maximum at 1.51. The band stays wide at low values of x,
# where no drawn function had its maximum.
