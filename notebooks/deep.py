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
# # A step: what does a second layer bring?
#
# A GP with one lengthscale cannot be flat here and steep there. A deep GP can: its first layer
# bends the input, so that the second sees a smooth one. This notebook fits a step with one and with
# two layers of spherical harmonics, draws functions through the layers, and looks at what is
# predicted away from the data, beside a neural network.
#
# It needs the extra `deep`: `pip install 'interdomain[deep]'`.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from gpflow.keras import tf_keras
from gpflux.models.deep_gp import sample_dgp
from scipy.stats import norm

import interdomain as idm
from interdomain import deep

STEPS = 3_000
EPOCHS = 400

# %% [markdown]
# ## A step
#
# 150 observations of a step, with a little noise, and none beyond -1.5 and 1.5.

# %%
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-1.5, 1.5, size=(150, 1)), axis=0)
Y = np.sign(X) + 0.05 * rng.normal(size=X.shape)
grid = np.linspace(-4, 4, 401)[:, None]

# %% [markdown]
# ## One layer and two
#
# `deep.build` makes models with values that they train well from; `widths` are the outputs of each
# layer. No layer needs a box around what it sees: inputs are projected onto a sphere.


# %%
def trained(widths: list[int]) -> deep.DeepGP:
    model = deep.build(
        X,
        widths=widths,
        num_inducing=25,
        likelihood=gpflow.likelihoods.Gaussian(0.01),
        num_samples=5,
        num_prediction_samples=64,
    )
    fit = idm.fit(model, (X, Y), steps=STEPS, progress=False, optimizer=0.01)
    print(f"widths {widths}: bound {fit.elbo:.1f} after {fit.seconds:.0f} s")
    return model


models = {"one layer": trained([1]), "two layers": trained([1, 1])}

# %% [markdown]
# ## A neural network beside them
#
# The same data, two hidden layers of 25 ReLU units, trained on the squared error; the residuals say
# how noisy the data are, and nothing says what the network does not know.

# %%
tf_keras.utils.set_random_seed(0)
network = tf_keras.Sequential(
    [tf_keras.layers.Dense(25, "relu"), tf_keras.layers.Dense(25, "relu"), tf_keras.layers.Dense(1)]
)
network.compile(tf_keras.optimizers.Adam(0.01), "mse")
network.fit(X, Y, epochs=EPOCHS, batch_size=50, verbose=0)
noise = np.sqrt(np.mean((network.predict(X, verbose=0) - Y) ** 2))

# %% [markdown]
# ## Samples through the layers
#
# GPflux's `sample_dgp` draws a function through all layers: each line is one.

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=False):
    samples = np.stack([sample_dgp(model)(grid)[:, 0] for _ in range(8)])
    axis.plot(grid, samples.T, "C0", lw=0.7, label=["functions"] + [None] * (len(samples) - 1))
    mean, variance = (part.numpy()[:, 0] for part in model.predict_y(grid))
    width = 2 * np.sqrt(variance)
    axis.fill_between(grid[:, 0], mean - width, mean + width, color="C0", alpha=0.15, label="2 sd")
    axis.set(title=name)
mean = network.predict(grid, verbose=0)[:, 0]
axes[2].plot(grid, mean, "C1", label="prediction")
axes[2].fill_between(
    grid[:, 0], mean - 2 * noise, mean + 2 * noise, color="C1", alpha=0.15, label="2 sd"
)
axes[2].set(title="neural network")
axes[0].set_ylabel("y")
for axis in axes:
    axis.plot(X, Y, "k.", ms=2, label="data")
    axis.set(xlabel="x", ylim=(-4, 4))
    axis.legend(loc="upper left", fontsize="small")
plt.show()

# %% [markdown]
# ## In numbers
#
# The log density of new observations, and the standard deviation of f among the data and away from
# them.

# %%
X_new = rng.uniform(-1.5, 1.5, size=(1_000, 1))
Y_new = np.sign(X_new) + 0.05 * rng.normal(size=X_new.shape)
for name, model in models.items():
    density = np.mean(model.predict_log_density((X_new, Y_new)))
    among, away = (
        float(np.mean(np.sqrt(model.predict_f(x)[1]))) for x in (X, np.array([[-4.0], [4.0]]))
    )
    print(f"{name}: log density {density:.2f}; deviation {among:.3f} among, {away:.3f} away")
density = np.mean(norm.logpdf(Y_new, network.predict(X_new, verbose=0), noise))
print(f"neural network: log density {density:.2f}; deviation {noise:.3f} of y everywhere")

# %% [markdown]
# Two layers are flat on both sides of the step and steep in it; one layer overshoots, as its one
# lengthscale has to serve both. Away from the data the deviation of the deep GP grows, and the
# band of the network stays as narrow as among them.
