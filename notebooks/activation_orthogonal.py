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
# # Hidden units as inducing variables, and what they leave
#
# The inducing variables of a GP can be hidden units of a neural network: the posterior mean is then
# what a network with these units computes. But a unit is one fixed function of an angle. What the
# activation does not have stays unexplained, and the predicted variance is too large. A second set
# of inducing variables, orthogonal to the first, can explain it (Tiao, Dutordoir and Picheny 2023,
# "Spherical Inducing Features for Orthogonally-Decoupled Gaussian Processes").
#
# Three things are shown: how to see before training whether an activation suits a kernel, a
# regression with and without orthogonal variables, and where its variance comes from. The data are
# the diabetes study of Efron et al. (2004), which ships with scikit-learn: 442 patients, ten
# measurements, and the progression of the disease one year later.

# %%
import os
from pathlib import Path

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes

import interdomain as idm

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
output = Path("notebooks" if Path("notebooks").is_dir() else ".") / "output"
output.mkdir(exist_ok=True)

# %%
study = load_diabetes()
order = np.random.default_rng(0).permutation(len(study.data))
train, test = np.split(order, [int(0.9 * len(order))])


def standardise(values):
    return (values - values[train].mean(0)) / values[train].std(0)


X, Y = standardise(study.data), standardise(study.target[:, None])
num_columns = X.shape[1]
dimension = num_columns + 1  # of the space around the sphere: the bias adds a column
data = X[train], Y[train]
print(f"{len(train)} patients to learn from, {len(test)} to test on, {num_columns} columns")

# %% [markdown]
# ## Does the activation fit the kernel?
#
# On the sphere, a kernel and an activation are sums over degrees l, with the eigenvalues
# `lambda_l` and the coefficients `a_l`. Their spectra are known before any data are seen. Four
# combinations, with features up to degree 6, and what `spectrum` warns of:

# %%
scales = np.full(num_columns, 0.1)
kernels = {
    "Matern-5/2": idm.kernels.SphericalMatern52(weight_variances=scales),
    "arc-cosine": idm.kernels.ArcCosine(order=1, weight_variances=scales),
}
MAX_DEGREE = 6
for name, kernel in kernels.items():
    for activation in ("relu", "softplus"):
        found = idm.diagnostics.spectrum(kernel, activation, dimension, MAX_DEGREE)
        print(f"{name}, {activation}: represents {found.represented_share:.1%} at most")
        for sentence in found.warnings:
            print(f"  - {sentence}")

# %% [markdown]
# ReLU and softplus have no odd degrees above the first. The arc-cosine kernel has none either, the
# Matern kernel has them. The norm of softplus is finite under both kernels: its coefficients fall
# much faster than the roots of the eigenvalues, while those of ReLU fall as fast as the roots of
# the arc-cosine kernel, and more slowly than those of the Matern kernel.

# %%
figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
for column, (name, kernel) in zip(axes.T, kernels.items(), strict=True):
    for axis, activation in zip(column, ("relu", "softplus"), strict=True):
        found = idm.diagnostics.spectrum(kernel, activation, dimension, max_degree=20)
        idm.plotting.spectrum(found, axis)
        axis.set_title(f"{name}, {activation}")
figure.savefig(output / "activation_spectra.png", dpi=120)
print(f"figure: {output / 'activation_spectra.png'}")

# %% [markdown]
# ## A regression with and without orthogonal variables
#
# The Matern kernel with ReLU, the combination that the spectrum warns of most. The units start in
# the directions of the data. As orthogonal variables we take points, at the centres of k-means;
# `OrthogonalSVGP` factorises two matrices, of the sizes of the two sets, where an SVGP with as many
# variables in all has one of the size of their sum.
#
# q is trained by natural gradients, the other parameters by Adam, on all of the data. An
# `OrthogonalSVGP` has a q for each set, and lists both in `variational_parameters`; `fit` finds
# them there.

# %%
M = 8 if SMOKE else 64
STEPS = 5 if SMOKE else 120


def relu_units(kernel, number):
    return idm.inducing_variables.ActivationFeatures.from_data(
        kernel, X[train], number, "relu", MAX_DEGREE
    )


def points(number):
    centres = KMeans(number, n_init=1, random_state=0).fit(X[train]).cluster_centers_
    return gpflow.inducing_variables.InducingPoints(centres)


def model_of(units=0, inducing_points=0):
    kernel = idm.kernels.SphericalMatern52(weight_variances=scales)
    likelihood = gpflow.likelihoods.Gaussian(0.5)
    if not units:
        return gpflow.models.SVGP(kernel, likelihood, points(inducing_points))
    base = relu_units(kernel, units)
    if not inducing_points:
        return gpflow.models.SVGP(kernel, likelihood, base)
    return idm.models.OrthogonalSVGP(kernel, likelihood, base, points(inducing_points))


models = {
    f"{M} units": model_of(units=M),
    f"{2 * M} units": model_of(units=2 * M),
    f"{M} units + {M} points": model_of(units=M, inducing_points=M),
    f"{2 * M} points": model_of(inducing_points=2 * M),
}
if SMOKE:  # compiling takes the time
    del models[f"{2 * M} units"], models[f"{2 * M} points"]
orthogonal = f"{M} units + {M} points"
pairs = models[orthogonal].variational_parameters
print("q of the orthogonal model:", [tuple(q_mu.shape) for q_mu, _ in pairs])

# %% [markdown]
# The last three columns are means over the test patients: the prior variance of f, the part of it
# that no inducing variable explains, however many data there are, and the posterior variance.

# %%
rows = []
for name, model in models.items():
    idm.training.fit(model, data, steps=STEPS, natural_gradient=0.5, progress=False)
    mean, _ = model.predict_y(X[test])
    rmse = np.sqrt(np.mean((Y[test] - mean) ** 2))
    nlpd = -np.mean(model.predict_log_density((X[test], Y[test])))
    elbo = float(model.elbo(data))
    noise = float(model.likelihood.variance.numpy())
    terms = idm.diagnostics.variance_terms(model, X[test])
    unexplained = terms.prior - terms.explained - terms.orthogonal_explained
    means = (np.mean(values) for values in (terms.prior, unexplained, terms.variance))
    rows.append((name, elbo, rmse, nlpd, noise, *means))

header = ("ELBO", "test RMSE", "test NLPD", "noise", "prior", "unexplained", "variance")
print(f"{'':24}" + "".join(f"{title:>12}" for title in header))
for name, *figures in rows:
    print(f"{name:24}" + "".join(f"{value:12.3f}" for value in figures))

# %% [markdown]
# In the full run nearly all of the variance is unexplained with units alone, and doubling their
# number takes little of it away. The bound then prefers a small prior variance and a large noise.
# With as many points beside the units the bound, the noise and the NLPD are close to those of an
# SVGP with that many points in all, and what is unexplained is a small part of what it was. The
# RMSE hardly differs: it is the variance that the units get wrong.

# %% [markdown]
# ## Where the variance comes from
#
# `variance_terms` takes the variance of f apart; the terms add up to what `predict_f` returns. The
# line goes through the patient who is average in everything, along the body mass index.

# %%
terms = idm.diagnostics.variance_terms(models[orthogonal], X[test])
error = np.max(np.abs(terms.variance - models[orthogonal].predict_f(X[test])[1]))
print(f"largest difference to predict_f: {error:.0e}")

line = np.tile(X[train].mean(0), (101, 1))
bmi = study.feature_names.index("bmi")
line[:, bmi] = np.linspace(-3.0, 3.0, 101)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
for axis, name in zip(axes, (f"{M} units", orthogonal), strict=True):
    terms = idm.diagnostics.variance_terms(models[name], line)
    idm.plotting.variance_terms(line[:, bmi], terms, axis)
    axis.set(title=name, xlabel="body mass index (standardised)")
figure.savefig(output / "activation_variance.png", dpi=120)
print(f"figure: {output / 'activation_variance.png'}")

# %% [markdown]
# With units alone, the dark blue line, what the units cannot explain, is nearly all of the variance
# in the full run. With orthogonal variables that line is there as well, and higher, as the prior
# variance is; but the dashed one takes nearly all of it away.
