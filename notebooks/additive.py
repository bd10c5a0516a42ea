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
# # A table: what does each column do?
#
# 442 patients with diabetes, ten columns measured at the start, and how far the disease has
# progressed a year later (Efron et al. 2004, *Least angle regression*; scikit-learn ships it). The
# model is a sum of effects: what each column does, and what pairs of columns do beyond that. Each
# effect is a function with error bars, and so is its share of the variance.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

import interdomain as idm

FOLDS = 5
NUM_FEATURES = 500  # of all interactions

# %%
table = load_diabetes(scaled=False)
X, y = table.data, table.target
NAMES = ["age", "sex", "bmi", "blood pressure", "cholesterol", "LDL", "HDL", "cholesterol / HDL"]
NAMES += ["log triglycerides", "glucose"]
print(f"{len(X)} patients; progression from {y.min():.0f} to {y.max():.0f}")


# %% [markdown]
# ## The model
#
# Columns stay in their own units. The features of all effects are fixed functions of the columns,
# so one pass over the rows serves every step of training. Effects that the data do not ask for have
# their prior variances taken to zero.


# %%
def additive(rows, target, effects, num_inducing):
    kernel = idm.tables.Additive.from_data(rows, effects, names=NAMES, categorical=["sex"])
    features = idm.tables.AdditiveFeatures.for_kernel(kernel, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, features)
    centre, scale = target.mean(), target.std()
    data = rows, ((target - centre) / scale)[:, None]
    model = idm.models.StructuredSGPR(data, prior, features, noise_variance=0.5, progress=False)
    idm.fit(model, progress=False)
    return model, centre, scale


MODELS = {
    "linear regression": LinearRegression(),
    "gradient boosting": GradientBoostingRegressor(
        n_estimators=60, learning_rate=0.05, subsample=0.7, random_state=0
    ),
    "effects of columns": (["main"], 100),
    "and two interactions": (["main", ("age", "sex"), ("bmi", "blood pressure")], 150),
    "and all interactions": (["main", "pairs"], NUM_FEATURES),
}


# %% [markdown]
# ## Is it any good?
#
# Five folds. The two models without error bars get the variance of their errors in a
# cross-validation of the training rows.


# %%
def predictions(model, rows, target, new):
    if isinstance(model, tuple):
        fitted, centre, scale = additive(rows, target, *model)
        mean, variance = (part.numpy()[:, 0] for part in fitted.predict_y(new))
        return centre + scale * mean, scale**2 * variance
    errors = target - cross_val_predict(model, rows, target, cv=5)
    return model.fit(rows, target).predict(new), np.mean(errors**2)


folds = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))
for name, model in MODELS.items():
    squares, densities = [], []
    for train, test in folds:
        mean, variance = predictions(model, X[train], y[train], X[test])
        squares += list((y[test] - mean) ** 2)
        densities += list(-0.5 * (np.log(2 * np.pi * variance) + (y[test] - mean) ** 2 / variance))
    print(f"{name:20s} RMSE {np.mean(squares) ** 0.5:.1f}, log density {np.mean(densities):.3f}")

# %% [markdown]
# Nothing beats straight lines here: 442 noisy rows. Effects of columns, with two interactions that
# were picked by hand (knowing the table), predict as well, boosting worse, and all interactions at
# once worst. What the effects have that the others lack are curves where the data bend, and
# error bars that say where nobody knows.
#
# ## What the model says
#
# A share is a Sobol index: what an effect contributes to the variance of f, if the columns took
# their values independently. (They do not: LDL is a part of cholesterol. A share says what the
# model does, not what would happen to a patient whose value were changed.)

# %%
model, centre, scale = additive(X, y, *MODELS["and two interactions"])
report = idm.tables.effects(model, X, scale=scale)
print(report)

# %%
shares, axis = report.shares, plt.figure(figsize=(7, 5)).subplots()
axis.barh(report.names, shares, xerr=2 * report.share_deviations)
axis.set(xlabel="share of the variance of f (two standard deviations)")
plt.show()

# %% tags=["thumbnail"]
report.plot(label="effect on progression")
plt.show()

# %% [markdown]
# ## One patient
#
# The prediction is the mean of f plus the patient's effects (± two standard deviations), and
# nothing else.

# %%
patient = X[[int(np.argmax(y))]]
mean, variance = (part[0] for part in report.at(patient))
start = centre + report.constant[0]
print(f"{'mean':28s} {start:6.0f}")
shown = np.argsort(-np.abs(mean))[:6]
for k in shown:
    values = ", ".join(f"{patient[0, column]:.4g}" for column in report.effects[k])
    error = 2 * np.sqrt(variance[k])
    print(f"{report.names[k]:20s} {values:>9s} {mean[k]:+5.0f} +- {error:.0f}")
print(f"{'all others':28s} {np.delete(mean, shown).sum():+6.0f}")
predicted = centre + scale * model.predict_f(patient)[0].numpy()[0, 0]
print(f"{'prediction':28s} {predicted:6.0f} (observed: {y.max():.0f})")
