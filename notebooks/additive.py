# %% [markdown]
# # A table: what does each column do?
#
# This notebook fits a sum of effects to a table, and shows each effect with its error bars and its
# share of the variance. The notebook is for readers who want predictions and an explanation. An
# effect is a function of one column, or of a pair of columns beyond their single effects.
#
# The table holds 442 patients with diabetes, ten columns measured at the start, and the progression
# of the disease a year later (Efron et al. 2004, *Least angle regression*). The table ships with
# scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict

import interdomain as idm

FOLDS = 5
NUM_FEATURES = 500  # of the model with all interactions

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
# so one pass over the rows serves every step of training. Training reduces the prior variance of an
# effect to zero if the data do not support the effect.


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
# ## How accurate are the predictions?
#
# We compare five models in five-fold cross-validation. Linear regression and boosting predict no
# variance. Their variance is the mean squared error of a cross-validation of the training rows.


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
# Linear regression is the best model of these 442 noisy rows. Effects of columns are almost as
# good, also with two interactions that were chosen by hand. Boosting is worse, and all interactions
# together are the worst. Only the effects give curves, and error bars that widen where there are
# few data.
#
# ## The shares of the effects
#
# A share is a Sobol index: the part of the variance of f that an effect contributes, if the columns
# were independent. (They are not: LDL is a part of cholesterol. A share describes the model. It
# does not predict what happens to a patient whose value is changed.)

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
# The bars give the shares, and the black lines two standard deviations of each. The panels give the
# six largest effects: look for bends that a straight line would miss, such as the flat ends of log
# triglycerides.
#
# ## One patient
#
# The prediction is the mean of f plus the patient's effects, each with two standard deviations.

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
