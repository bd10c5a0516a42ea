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
# # Quick start: one table, four models
#
# What changes when spherical harmonics take the place of inducing points? The same regression four
# times: exact GP regression, a sparse GP with inducing points, and two sparse GPs with as many
# harmonics: GPflow's `SVGP`, for which two constructor calls change, and `StructuredSGPR`, which is
# GPflow's `SGPR` without its factorisation of Kuu.
#
# The data are the diabetes study of Efron et al. (2004), which ships with scikit-learn: 442
# patients, ten measurements, and the progression of the disease one year later.

# %%
from time import perf_counter

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes

import interdomain as idm

MAX_ITERATIONS = 200

# %%
X, y = load_diabetes(return_X_y=True)
order = np.random.default_rng(0).permutation(len(X))
train, test = np.split(order, [int(0.9 * len(X))])


def standardise(values):
    return (values - values[train].mean(0)) / values[train].std(0)


X, Y = standardise(X), standardise(y[:, None])
num_columns = X.shape[1]
print(f"{len(train)} patients to learn from, {len(test)} to test on, {num_columns} columns")

# %% [markdown]
# ## The three-line change
#
# A kernel on the sphere has a weight variance per column where a stationary kernel has a
# lengthscale. The inducing variable needs no locations: it holds all harmonics up to a degree.

# %%
kernel = idm.kernels.SphericalMatern32(weight_variances=np.full(num_columns, 0.1))
harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(
    kernel, input_dim=num_columns, max_degree=2
)
num_inducing = harmonics.num_inducing
print(f"{num_inducing} harmonics of degrees {harmonics.degrees}")


# %%
def stationary_kernel():
    return gpflow.kernels.Matern32(lengthscales=np.full(num_columns, 3.0))


def svgp(kernel, inducing_variable):
    likelihood = gpflow.likelihoods.Gaussian(0.5)
    return gpflow.models.SVGP(kernel, likelihood, inducing_variable, num_data=len(train))


data = X[train], Y[train]
centres = KMeans(num_inducing, n_init=1, random_state=0).fit(X[train]).cluster_centers_
models = {
    "exact GPR": gpflow.models.GPR(data, stationary_kernel(), noise_variance=0.5),
    "SVGP, inducing points": svgp(stationary_kernel(), centres),
    "SVGP, spherical harmonics": svgp(gpflow.utilities.deepcopy(kernel), harmonics),
    "SGPR, spherical harmonics": idm.models.StructuredSGPR(
        data, gpflow.utilities.deepcopy(kernel), harmonics, noise_variance=0.5, progress=False
    ),
}

# %%
rows = []
for name, model in models.items():
    start = perf_counter()
    holds_data = isinstance(model, gpflow.models.InternalDataTrainingLossMixin)
    options = {"subset_size": None} if isinstance(model, idm.models.StructuredSGPR) else None
    given = None if holds_data else data
    result = idm.fit(model, given, steps=MAX_ITERATIONS, progress=False, options=options)
    seconds = perf_counter() - start
    mean, _ = model.predict_y(X[test])
    rmse = np.sqrt(np.mean((Y[test] - mean) ** 2))
    nlpd = -np.mean(model.predict_log_density((X[test], Y[test])))
    rows.append((name, rmse, nlpd, result.elbos[-1], seconds))

# %% [markdown]
# The column ELBO holds the log marginal likelihood of the exact model, and the lower bound on it of
# the others. Bounds of one kernel can be compared: an SVGP's never exceeds that of an SGPR with the
# same parameters, whose q(u) is optimal in closed form.

# %%
print(f"{'':28}{'test RMSE':>10}{'test NLPD':>10}{'ELBO':>9}{'seconds':>9}")
for name, rmse, nlpd, elbo, seconds in rows:
    print(f"{name:28}{rmse:10.3f}{nlpd:10.3f}{elbo:9.1f}{seconds:9.1f}")

# %% [markdown]
# On 442 noisy patients nothing has to be approximated: exact regression takes seconds and has the
# smallest errors, if not by much. Harmonics pay where there are many rows or many features
# ([terrain](terrain.ipynb), [large_data](large_data.ipynb)); here they show what changes in a
# program.
#
# ## What the harmonics capture
#
# The harmonics of degree l carry the share `N(d, l) lambda_l` of the prior's variance on the
# sphere, known before any data is seen. What lies above the highest degree stays at the prior.

# %%
model = models["SGPR, spherical harmonics"]
shares = model.kernel.variance_shares(num_columns + 1, max_degree=6).numpy()
degrees = np.arange(len(shares))
used = np.isin(degrees, harmonics.degrees)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(2, 1))
mean, variance = (moment.numpy()[:, 0] for moment in model.predict_y(X[test]))
by_mean = np.argsort(mean)
ranks = np.arange(len(test))
half_width = 1.96 * np.sqrt(variance[by_mean])
left.fill_between(
    ranks, mean[by_mean] - half_width, mean[by_mean] + half_width, alpha=0.25, label="95% interval"
)
left.plot(ranks, mean[by_mean], label="prediction")
left.plot(ranks, Y[test][by_mean, 0], "k.", label="observed")
left.set(xlabel="test patients, by predicted progression", ylabel="progression (standardised)")
left.legend(loc="upper left")
right.bar(degrees, shares, color=np.where(used, "C0", "C7"))
right.set(
    xlabel="degree",
    ylabel="share of the prior variance",
    yscale="log",
    title=f"all but {1 - shares[used].sum():.1e} is in\nthe harmonics used (blue)",
)
figure.tight_layout()
plt.show()
