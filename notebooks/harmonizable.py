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
# # Harmonizable mixtures: other frequencies in other places
#
# A stationary kernel has one spectrum, everywhere the same. The harmonizable mixture kernel (Shen,
# Heinonen and Kaski 2019, "Harmonizable mixture kernels with variational Fourier features") is a
# sum of sinusoids seen through Gaussian windows: each window has frequencies of its own. Functions
# under it fade far from all windows, so that they have a Fourier transform, and its values at a few
# frequencies are the inducing variables: no points in the space of the inputs.
#
# Shown on ten seconds of an EEG that ships with matplotlib: slow waves at first, spikes later.

# %%
import os
from pathlib import Path

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cbook import get_sample_data

import interdomain as idm

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
rng = np.random.default_rng(0)
output = Path("notebooks" if Path("notebooks").is_dir() else ".") / "output"
output.mkdir(exist_ok=True)

# %% [markdown]
# 800 samples of one electrode, of which a quarter, picked at random, are left out to be predicted.

# %%
with get_sample_data("eeg.dat") as file:
    electrode = np.fromfile(file, dtype=float).reshape(800, 4)[:, 0]
t = np.linspace(0.0, 10.0, 800)[:, None]
y = ((electrode - electrode.mean()) / electrode.std())[:, None]
if SMOKE:
    t, y = t[::8], y[::8]
missing = rng.uniform(size=len(t)) < 0.25
X, Y, X_test, Y_test = t[~missing], y[~missing], t[missing], y[missing]
print(f"{len(X)} samples to learn from, {len(X_test)} to predict")

# %% [markdown]
# ## Kernels from data
#
# `from_data` looks at the data through each window and takes the frequencies that explain most of
# what is there; training starts from a kernel that is usable already. `SpectralMixture.from_data`
# does so for the stationary mixture, with one window over everything.

# %%
P, Q = (2, 2) if SMOKE else (8, 3)
mixture = idm.kernels.HarmonizableMixture.from_data(X, Y, P, Q, centres="grid")
stationary = idm.kernels.SpectralMixture.from_data(X, Y, Q + 2)
for component in mixture.kernels:
    print(
        f"at {component.centre.numpy()[0]:4.1f} s:",
        ", ".join(f"{frequency:5.2f} Hz" for frequency in component.frequencies.numpy()[:, 0]),
    )

# %% [markdown]
# ## Inducing frequencies
#
# One `FourierFeatures` for each component, with the frequencies at which most of its variance is;
# each has a real and an imaginary part (but for zero, which is real). Beside it, as many points
# under the two stationary kernels. All are stock `gpflow.models.SGPR`s.
#
# The bound of the harmonizable mixture is the highest by far: it need not choose between waves and
# spikes. The missing samples are another matter, as most of what can be known of one is in its two
# neighbours: the squared exponential predicts them as well.

# %%
features = idm.inducing_variables.FourierFeatures.for_kernel(mixture, 4 if SMOKE else 8)
M = int(features.num_inducing)
points = np.linspace(X.min(), X.max(), M)[:, None]
models = {
    "squared exponential": gpflow.models.SGPR(
        (X, Y), gpflow.kernels.SquaredExponential(lengthscales=0.1), points, noise_variance=0.1
    ),
    "spectral mixture": gpflow.models.SGPR((X, Y), stationary, points, noise_variance=0.1),
    "harmonizable mixture": gpflow.models.SGPR((X, Y), mixture, features, noise_variance=0.1),
}
print(f"M = {M}\n{'':22}{'bound':>10}{'test RMSE':>12}{'test NLPD':>12}")
for name, model in models.items():
    idm.training.fit(model, method="l-bfgs", steps=3 if SMOKE else 150, progress=False)
    error = Y_test - model.predict_f(X_test)[0].numpy()
    density = model.predict_log_density((X_test, Y_test)).numpy()
    rmse, nlpd = np.sqrt(np.mean(error**2)), -np.mean(density)
    print(f"{name:22}{model.elbo().numpy():10.1f}{rmse:12.3f}{nlpd:12.3f}")

# %%
figure, axes = plt.subplots(3, 1, figsize=(12, 7), sharex=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    mean, variance = (value.numpy()[:, 0] for value in model.predict_y(t))
    axis.plot(X, Y, "k.", ms=2)
    axis.plot(X_test, Y_test, "r.", ms=3)
    axis.plot(t, mean, "C0", lw=1)
    width = 1.96 * np.sqrt(variance)
    axis.fill_between(t[:, 0], mean - width, mean + width, color="C0", alpha=0.25, lw=0)
    axis.set_title(name)
figure.savefig(output / "harmonizable_predictions.png", dpi=80)

# %% [markdown]
# ## What the kernel has learned
#
# The Wigner distribution says which frequencies there are where, as a spectrogram does for data;
# crosses are the inducing frequencies, over the centres of their windows. The generalized spectral
# density is the covariance of the Fourier transform at two frequencies: a stationary process has it
# on the diagonal alone.

# %%
figure, axes = plt.subplots(1, 3, figsize=(15, 4.4), layout="constrained")
places, frequencies = np.linspace(0, 10, 50 if SMOKE else 200), np.linspace(0, 8, 60)
idm.plotting.kernel_matrix(mixture, places, axes[0])
idm.plotting.wigner(mixture, places, frequencies, axes[1], inducing_variable=features)
idm.plotting.generalized_spectral_density(mixture, np.linspace(-4, 4, 121), axes[2])
for axis, title in zip(axes, ("kernel", "Wigner distribution", "spectral density"), strict=True):
    axis.set_title(title)
figure.savefig(output / "harmonizable_kernel.png", dpi=80)

# %% [markdown]
# ## One component each
#
# The kernel is a sum, and each component has its own inducing variables. `AdditiveSVGP` gives each
# an independent q (and, with `devices=`, a device); any likelihood will do. Here one for outliers,
# which the spikes are for a model of the slow waves.

# %%
model = idm.models.AdditiveSVGP(
    mixture, gpflow.likelihoods.StudentT(scale=0.3), features, num_data=len(X)
)
result = idm.training.fit(
    model,
    (X, Y),
    steps=5 if SMOKE else 300,
    batch_size=min(256, len(X)),
    natural_gradient=0.1,
    learning_rate=0.01,
    progress=False,
)
mean = model.predict_f(X_test)[0].numpy()
print(f"ELBO {result.elbo:.1f}, test RMSE {np.sqrt(np.mean((Y_test - mean) ** 2)):.3f}")

# %% [markdown]
# ## Matern kernels on an interval
#
# Hensman, Durrande and Solin's Fourier features (2018) belong to Matern kernels: sines and cosines
# over an interval, whose Kuu is a diagonal plus a matrix of rank 2 for a Matern-3/2. GPflow's
# `SGPR` would factorise it as a dense matrix; `StructuredSGPR` keeps the structure.

# %%
interval = idm.inducing_variables.IntervalFourierFeatures.from_data(X, 10 if SMOKE else 100)
kernel = gpflow.kernels.Matern32(lengthscales=0.2)
model = idm.models.StructuredSGPR((X, Y), kernel, interval, noise_variance=0.1, progress=False)
idm.training.fit(model, method="l-bfgs", steps=3 if SMOKE else 50, progress=False)
exact = gpflow.models.GPR((X, Y), kernel, noise_variance=model.likelihood.variance.numpy())
print(
    f"{interval.num_inducing} features from {interval.lower:.1f} to {interval.upper:.1f} s: bound "
    f"{model.elbo().numpy():.1f}, exact {exact.log_marginal_likelihood().numpy():.1f}"
)
