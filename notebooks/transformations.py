# %% [markdown]
# # Which transformation splits a kernel best?
#
# This notebook ranks transformations of the inputs before training. The notebook is for readers who
# want to use an `HVGP`. If a kernel is invariant to a transformation, it is a sum of independent
# parts, and each part can have inducing points of its own. A good transformation maps the data to
# places where there are data. `rank_transforms` measures the prior variance that the inducing
# points leave unexplained; it needs no targets.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import load_diabetes

import interdomain as idm

NUM_POINTS = 20  # in each part
SIZE = 31
rng = np.random.default_rng(0)

# %% [markdown]
# ## A kernel and its parts
#
# The squared exponential kernel depends on distances only, so rotations do not change it. Rotations
# by 90 degrees form a group of order 4. The complex parts of frequencies 1 and 3 are added, so that
# three real parts remain. A function is drawn from each part; the sum of the three functions is a
# draw from the kernel.

# %% tags=["thumbnail"]
kernel = idm.kernels.HarmonicKernel(
    gpflow.kernels.SquaredExponential(lengthscales=0.7), idm.transforms.Rotation(order=4)
)
ticks = np.linspace(-2.0, 2.0, SIZE)
grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def draw(kernel):
    eigenvalues, eigenvectors = np.linalg.eigh(kernel(grid).numpy())
    weights = np.sqrt(np.maximum(eigenvalues, 0.0)) * rng.normal(size=len(eigenvalues))
    return (eigenvectors @ weights).reshape(SIZE, SIZE)


titles = {0: "the same after 90°", 1: "the opposite after 180°", 2: "the opposite after 90°"}
panels = {
    titles[t]: draw(part) for (t,), part in zip(kernel.frequencies, kernel.kernels, strict=True)
}
panels["their sum"] = sum(panels.values())
limit = max(np.max(np.abs(values)) for values in panels.values())
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for axis, (title, values) in zip(axes, panels.items(), strict=True):
    filled = axis.contourf(ticks, ticks, values, np.linspace(-limit, limit, 21), cmap="RdBu_r")
    axis.set(title=title, aspect="equal", xlabel="first column")
axes[0].set_ylabel("second column")
figure.colorbar(filled, ax=axes, label="f", format="%.1f")
plt.show()

# %% [markdown]
# Rotate the panels in your mind: by 90 degrees, the first part does not change and the third part
# changes its sign. The second part changes its sign after 180 degrees. The sum has no symmetry.
#
# ## Candidates for a table
#
# The diabetes study of Efron et al. (2004) has ten columns. They are scaled to between 0 and 1,
# which is common: the origin is then a corner of the data, not the centre.

# %%
X = load_diabetes().data
X = (X - X.min(0)) / (X.max(0) - X.min(0))
mean, num_columns = X.mean(0), X.shape[1]
halves = list(range(0, num_columns, 2)), list(range(1, num_columns, 2))
Negation, PrincipalNegation = idm.transforms.Negation, idm.transforms.PrincipalNegation
principal = {groups: PrincipalNegation.from_data(X, groups) for groups in (1, 2, 3)}
candidates = {
    "no transformation": None,
    "columns, 2 groups": [Negation(half, centre=mean[half]) for half in halves],
    "columns, 2 groups, about 0": [Negation(half) for half in halves],
    "PCA, 1 group": principal[1],
    "PCA, 2 groups": principal[2],
    "PCA, 3 groups": principal[3],
}
matern = gpflow.kernels.Matern32(lengthscales=np.median(pdist(X)))
ranking = idm.diagnostics.rank_transforms(
    matern, list(candidates.values()), X, num_inducing=NUM_POINTS
)
(without,) = idm.diagnostics.rank_transforms(matern, [None], X, num_inducing=4 * NUM_POINTS)

# %%
names = {id(candidate): name for name, candidate in candidates.items()}
labels, errors = [], []
for number, (candidate, size, error) in enumerate([*ranking, without]):
    points = NUM_POINTS if number < len(ranking) else size
    labels.append(f"{names[id(candidate)]}: {size // points} x {points} points")
    errors.append(error)
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
bars = ax.barh(labels, errors, color=["C0"] * len(ranking) + ["C7"])
ax.bar_label(bars, fmt="%.4f", padding=3)
ax.invert_yaxis()
ax.margins(x=0.15)
ax.set(xlabel="prior variance left unexplained, per row", title="lower is better")
plt.show()

# %% [markdown]
# Negations about the mean, of columns or of principal directions (PCA), leave less unexplained than
# no transformation. Negations about the origin map the rows to places without data. Near the data
# the parts are then copies of one another, and 4 m points explain about as much as m points without
# a transformation. The grey bar is one block of 4 m points. One block leaves less unexplained than
# four blocks, but its Cholesky factorisation costs sixteen times as much as those of four blocks.
