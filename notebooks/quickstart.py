# %% [markdown]
# # Quick start: one table, four models
#
# This notebook replaces the inducing points of a GPflow model by spherical harmonics, and compares
# errors and seconds. The notebook is for users of GPflow who see this library for the first time.
# The four models are an exact GP, an `SVGP` with inducing points, and an `SVGP` and a
# `StructuredSGPR` with as many harmonics. A `StructuredSGPR` is GPflow's `SGPR` without a Cholesky
# factorisation of Kuu.
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
# ## What changes in the program
#
# Two constructor calls change. A kernel on the sphere has a weight variance for each column, in
# place of a lengthscale. The inducing variable needs no locations: it holds all harmonics up to a
# degree.

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
# The column ELBO holds the log marginal likelihood of the exact model, and the evidence lower bound
# of the other models. Compare bounds of the same kernel only. With equal parameters, the bound of
# an SVGP never exceeds that of an SGPR, whose q(u) is optimal in closed form.

# %%
print(f"{'':28}{'test RMSE':>10}{'test NLPD':>10}{'ELBO':>9}{'seconds':>9}")
for name, rmse, nlpd, elbo, seconds in rows:
    print(f"{name:28}{rmse:10.3f}{nlpd:10.3f}{elbo:9.1f}{seconds:9.1f}")

# %% [markdown]
# On 442 noisy patients, exact regression takes seconds and has the smallest errors, by a small
# margin. Harmonics save time if there are many rows ([large_data](large_data.ipynb)).
#
# ## What the harmonics capture
#
# The harmonics of degree l have the share `N(d, l) lambda_l` of the prior variance on the sphere:
# `N(d, l)` harmonics with the eigenvalue `lambda_l`. The share is known before any data are seen.
# Degrees above the highest one keep their prior variance.

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

# %% [markdown]
# Left: nearly all observed points lie in the 95% interval, which is wide because the data are
# noisy. Right: the grey degrees are not in the model. Their shares of the prior variance are tiny.
