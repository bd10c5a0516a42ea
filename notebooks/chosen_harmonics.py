# %% [markdown]
# # Which columns, and how high a degree?
#
# This notebook lets the data choose spherical harmonics: high degrees in the few columns that need
# them, and none in the others. The notebook is for readers with a table of many columns, of which
# few matter. Twenty columns have 252 harmonics up to degree 2, and 12,397 up to degree 4.
#
# The table is Friedman's (1991), which scikit-learn generates:
# `y = 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4`, with noise of variance one, and fifteen
# more columns that are not in the formula. The formula is known, so we can check the model's
# explanation.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

import interdomain as idm

NUM_ROWS = 10_000
NUM_INDUCING = 400

# %%
X, y = make_friedman1(NUM_ROWS, n_features=20, noise=1.0, random_state=0)
train, test = np.split(np.random.default_rng(0).permutation(NUM_ROWS), [int(0.9 * NUM_ROWS)])
X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
scale = y[train].std()
Y = ((y - y[train].mean()) / scale)[:, None]
print(f"{len(train):,} rows, {X.shape[1]} columns; the noise has an RMSE of {1 / scale:.3f}")

# %% [markdown]
# ## All harmonics of low degrees, and chosen ones
#
# The first model has all harmonics up to degree 2, and a weight variance for each column. Its prior
# consists of the harmonics (`FiniteRank`). For the second model, `fit` with `num_inducing` trains
# the weights on a part of the rows. `fit` then adds the harmonics that explain most of the
# residuals, and reads all rows in a last pass.

# %%
num_columns = X.shape[1]
kernel = idm.kernels.SphericalMatern52(weight_variances=np.full(num_columns, 0.5))
few = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, num_columns, max_degree=2)


def model_of(features):
    prior = idm.kernels.FiniteRank(kernel, features)
    data = X[train], Y[train]
    return idm.models.StructuredSGPR(data, prior, features, noise_variance=0.1, progress=False)


def errors(model):
    mean, variance = (value.numpy() for value in model.predict_y(X[test]))
    rmse = np.sqrt(np.mean((Y[test] - mean) ** 2))
    density = -0.5 * np.log(2 * np.pi * variance) - (Y[test] - mean) ** 2 / (2 * variance)
    return f"RMSE {rmse:.3f}, log density {density.mean():.3f}"


whole = model_of(few)
fitted = idm.fit(whole, progress=False)
print(f"{few.num_inducing} harmonics up to degree 2: {errors(whole)}, {fitted.seconds:.0f} s")

# %%
gpflow.set_trainable(kernel, True)  # `fit` has frozen the weights
chosen = model_of(few)
fitted = idm.fit(chosen, num_inducing=NUM_INDUCING, progress=False)
harmonics = chosen.inducing_variable
print(fitted.choice)
print(f"\n{harmonics.num_inducing} chosen harmonics: {errors(chosen)}, {fitted.seconds:.0f} s")

# %% [markdown]
# ## What the chosen harmonics explain
#
# `harmonic_shares` gives the shares of columns and degrees in the posterior mean. The columns are
# in the order of their scales when the harmonics were chosen, the smallest first. The last one is
# the bias, which all inputs share.

# %%
report = idm.diagnostics.harmonic_shares(
    harmonics,
    kernel,
    X[train],
    whitened_mean=chosen.whitened_mean(),
    column_names=[f"x{k}" for k in range(num_columns)],
)
print(report)

# %%
weights = kernel.weight_variances.numpy()
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
left.bar(range(5), np.sqrt(weights[:5]), color="C0", label="in the formula")
left.bar(range(5, num_columns), np.sqrt(weights[5:]), color="0.7", label="not in the formula")
left.legend()
left.set(xlabel="column", ylabel="root of the weight variance", xticks=range(0, num_columns, 5))
left.set_title("scale of each column after training")
report.plot(right)
right.set(xlabel="share of the posterior mean (squared terms)", title="columns and degrees")
plt.show()

# %% [markdown]
# Left: only the five columns of the formula have weights that differ visibly from zero. Right:
# columns 0 and 1, which interact in the formula, have the largest shares after the bias, at degrees
# 1 and 2.

# %%
found = set(np.argsort(-weights)[:5].tolist())
print(f"the columns with the five largest weights are {sorted(found)}")
