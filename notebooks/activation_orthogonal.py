# %% [markdown]
# # Hidden units as inducing variables: what do they leave unexplained?
#
# This notebook uses the hidden units of a neural network as inducing variables. The posterior mean
# is then the output of a network with these units. You see which prior variance the units cannot
# explain. A second, orthogonal set of inducing variables explains it (Tiao, Dutordoir and Picheny
# 2023, "Spherical Inducing Features for Orthogonally-Decoupled Gaussian Processes"). The notebook
# is for readers who want a GP whose mean is a forward pass of a network.
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
dimension = num_columns + 1  # of the space around the sphere: the columns and the bias
data = X[train], Y[train]
print(f"{len(train)} patients to learn from, {len(test)} to test on, {num_columns} columns")

# %% [markdown]
# ## Does the activation fit the kernel?
#
# On the sphere, a kernel and an activation are sums over degrees l, with the eigenvalues `lambda_l`
# and the coefficients `a_l`. Both spectra are known before any data are seen. ReLU, softplus and
# the arc-cosine kernel have no odd degrees above the first. The Matern kernel has all degrees.

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
# Red circles mark the degrees that the activation lacks. The Matern kernel loses all odd degrees
# from 3 on; the arc-cosine kernel loses none.
#
# ## A regression with and without orthogonal variables
#
# We use the combination that leaves most unexplained: the Matern kernel with ReLU. The units start
# in the directions of the data. The orthogonal variables are points at the centres of k-means.
# `OrthogonalSVGP` factorises two matrices, one for each set. An SVGP with all variables in one set
# factorises one matrix, whose size is the sum of the two.

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
# many data there are. With units alone the share is large, and twice as many units reduce it
# little. With units and points the bound is close to that of an SVGP with points only, **which has
# the best bound here**. The errors of the means hardly differ. Use units if the mean has to be a
# forward pass of a network.
#
# ## The terms of the variance
#
# `variance_terms` splits the variance of f into terms. They are drawn along the body mass index of
# a patient who is average in every other column.

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

# %% [markdown]
# Left: the variance of f (black) is nearly all prior variance that the units leave (dark blue).
# Right: the points explain almost all of that variance (dashed), so that the black line is near
# zero.
