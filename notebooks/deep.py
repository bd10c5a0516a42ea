# %% [markdown]
# # A step: what does a second layer add?
#
# This notebook fits a step with one and with two layers of spherical harmonics, and with a neural
# network. The notebook is for readers who consider a deep GP. A GP with one lengthscale cannot be
# flat in one place and steep in another. In a deep GP the first layer bends the input, so that the
# second layer sees a smooth function. Look at the step itself, and at the predictions away from the
# data.
#
# The notebook needs the extra `deep`: `pip install 'interdomain[deep]'`.

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
# The data are 150 observations of a step with a little noise, all between -1.5 and 1.5.

# %%
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(-1.5, 1.5, size=(150, 1)), axis=0)
Y = np.sign(X) + 0.05 * rng.normal(size=X.shape)
grid = np.linspace(-4, 4, 401)[:, None]

# %% [markdown]
# ## One layer and two
#
# `deep.build` makes models with initial values that train well; `widths` are the numbers of outputs
# of the layers. The layers need no box around their inputs, because inputs are projected onto a
# sphere.


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
# ## A neural network as the baseline
#
# The network has two hidden layers of 25 ReLU units, and is trained on the squared error. Its
# residuals give the noise of the data. The network does not estimate its own uncertainty.

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
# GPflux's `sample_dgp` draws a function through all layers. Each thin line is one draw.

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
# One layer overshoots at the step, because its only lengthscale is a compromise. Two layers are
# flat on both sides of the step, and steep in it. Away from the data, the band of the deep GP is
# the widest. The band of the network is as narrow as among the data.
#
# ## In numbers
#
# Each line has the log density of new observations, and standard deviations: of f for the GPs,
# among the data and at -4 and 4, and of y for the network.

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
# Two layers have the highest log density, and the largest standard deviation away from the data.
