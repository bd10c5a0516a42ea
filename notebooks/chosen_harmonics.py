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
# # Which columns, and how high a degree?
#
# A table of twenty columns, and a target that depends on five of them in ways that nobody tells the
# model. All harmonics of degree 2 of twenty columns are 252, of degree 4 they would be 12,397. So
# the data choose: high degrees in the few columns that need them, none in the others.
#
# The table is Friedman's (1991), which scikit-learn makes: `y = 10 sin(pi x0 x1) + 20 (x2 - 0.5)^2
# + 10 x3 + 5 x4`, with noise of variance one, and fifteen columns that say nothing. Because the
# truth is known, we can see whether the model's explanation is right.

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
# ## Few harmonics to begin with
#
# All harmonics up to degree 2, a weight variance for each column, and a prior that consists of the
# harmonics (`FiniteRank`), whatever they are. `fit` with `num_inducing` trains the weights on
# some of the rows, lets the residuals say which harmonics are missing, and takes one pass over all
# rows in the end.

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
gpflow.set_trainable(kernel, True)  # `fit` froze the weights
chosen = model_of(few)
fitted = idm.fit(chosen, num_inducing=NUM_INDUCING, progress=False)
harmonics = chosen.inducing_variable
print(fitted.choice)
print(f"\n{harmonics.num_inducing} chosen harmonics: {errors(chosen)}, {fitted.seconds:.0f} s")

# %% [markdown]
# ## What it needed
#
# `harmonic_shares` tells in which columns and degrees the posterior mean is. The columns are in the
# order that they had when the harmonics were chosen, the smallest scale first; the bias, which all
# inputs have in common, is the last.

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
left.bar(range(5, num_columns), np.sqrt(weights[5:]), color="0.7", label="noise")
left.legend()
left.set(xlabel="column", ylabel="root of the weight variance", xticks=range(0, num_columns, 5))
left.set_title("what the model found to matter")
report.plot(right)
right.set(xlabel="share of the posterior mean (squared terms)", title="where the model is")
plt.show()

# %%
found = set(np.argsort(-weights)[:5].tolist())
print(f"the five largest weights are those of columns {sorted(found)}")
