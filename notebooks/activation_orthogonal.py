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
# # Neurons as inducing variables: what do they leave, and what repairs it?
#
# The inducing variables of a GP can be hidden units of a neural network: the posterior mean is then
# what a network with these units computes. But a unit is one fixed function of an angle. What the
# activation does not have stays unexplained, and the predicted variance is too large. A second set
# of inducing variables, orthogonal to the first, can explain it (Tiao, Dutordoir and Picheny 2023,
# "Spherical Inducing Features for Orthogonally-Decoupled Gaussian Processes").
#
# The data: 442 patients with ten measurements, the diabetes study that ships with scikit-learn.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes

import interdomain as idm

NUM_UNITS = 64
STEPS = 120
MAX_DEGREE = 6

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
# `lambda_l` and the coefficients `a_l`. Their spectra are known before any data are seen. ReLU and
# softplus have no odd degrees above the first. The arc-cosine kernel has none either, the Matern
# kernel has them: `spectrum` shows what a combination leaves out.

# %%
scales = np.full(num_columns, 0.1)
kernels = {
    "Matern-5/2": idm.kernels.SphericalMatern52(weight_variances=scales),
    "arc-cosine": idm.kernels.ArcCosine(order=1, weight_variances=scales),
}
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for axis, (name, kernel) in zip(axes, kernels.items(), strict=True):
    found = idm.diagnostics.spectrum(kernel, "relu", dimension, max_degree=20)
    found.plot(axis)
    axis.set_title(f"{name}, ReLU")
    few = idm.diagnostics.spectrum(kernel, "relu", dimension, MAX_DEGREE)
    print(f"{name}, ReLU: represents {few.represented_share:.1%} of the prior variance at most")
plt.show()

# %% [markdown]
# ## A regression with and without orthogonal variables
#
# The Matern kernel with ReLU, the combination that leaves out most. The units start in
# the directions of the data. As orthogonal variables we take points, at the centres of k-means;
# `OrthogonalSVGP` factorises two matrices, of the sizes of the two sets, where an SVGP with as many
# variables in all has one of the size of their sum.

# %%
M = NUM_UNITS


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
orthogonal = f"{M} units + {M} points"

# %%
print(f"{'':24}{'ELBO':>9}{'test RMSE':>11}{'test NLPD':>11}{'unexplained':>13}")
for name, model in models.items():
    natural = gpflow.optimizers.NaturalGradient(0.5)
    idm.fit(model, data, steps=STEPS, progress=False, optimizer=natural)
    rmse = np.sqrt(np.mean((Y[test] - model.predict_y(X[test])[0]) ** 2))
    nlpd = -np.mean(model.predict_log_density((X[test], Y[test])))
    terms = idm.diagnostics.variance_terms(model, X[test])
    rest = np.mean((terms.prior - terms.explained - terms.orthogonal_explained) / terms.prior)
    print(f"{name:24}{model.elbo(data):9.1f}{rmse:11.3f}{nlpd:11.3f}{rest:13.0%}")

# %% [markdown]
# The last column is the share of the prior variance that no inducing variable explains, however
# many data there are. With units alone it is most of it, and doubling their number takes little
# away. With points beside the units the bound is close to that of an SVGP with as many points in
# all, **which has the best one here**; the errors of the means hardly differ. Units pay where the
# mean has to be a forward pass of a network.
#
# ## Where the variance comes from
#
# `variance_terms` takes the variance of f apart. The line goes through the patient who is average
# in everything, along the body mass index.

# %%
line = np.tile(X[train].mean(0), (101, 1))
bmi = study.feature_names.index("bmi")
line[:, bmi] = np.linspace(-3.0, 3.0, 101)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", sharey=True)
for axis, name in zip(axes, (f"{M} units", orthogonal), strict=True):
    terms = idm.diagnostics.variance_terms(models[name], line)
    terms.plot(line[:, bmi], axis)
    axis.set(title=name, xlabel="body mass index (standardised)", ylabel="variance of f")
plt.show()
