# %% [markdown]
# # Images: what do inducing patches learn?
#
# This notebook classifies images of digits with a convolutional GP, and shows its inducing patches.
# The notebook is for readers who want a GP of images. A convolutional GP is a mean over all patches
# of an image: the mean of one function g of the patch (van der Wilk, Rasmussen and Hensman 2017).
# Its inducing variables are values of g, so an inducing input is a patch, not an image. The digits
# 0 and 1 ship with scikit-learn, 8 x 8 pixels each; an RBF kernel is the baseline.

# %%
import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import interdomain as idm

NUM_PATCHES = 32
STEPS = 300
IMAGE, PATCH = (8, 8), (3, 3)

# %%
digits = load_digits()
two = np.isin(digits.target, [0, 1])
X, Y = digits.data[two] / 16.0, (digits.target[two] == 1)[:, None].astype(float)
order = np.random.default_rng(0).permutation(len(X))
train, test = np.split(order, [len(X) // 2])
print(f"{len(train)} digits to learn from, {len(test)} to test on")

# %% [markdown]
# ## Two models
#
# Both models are GPflow's SVGP. They differ in the kernel and its inducing variables only: images
# for the RBF kernel, as many patches for the convolutional kernel. The convolutional kernel has a
# weight for each patch of an image. Its function f is a mean over patches, so g needs more variance
# than f.

# %%
kernel = idm.kernels.Convolutional(gpflow.kernels.SquaredExponential(variance=50.0), IMAGE, PATCH)
patches = idm.inducing_variables.InducingPatches.from_data(kernel, X[train], NUM_PATCHES)
centres = KMeans(NUM_PATCHES, n_init=1, random_state=0).fit(X[train]).cluster_centers_
rbf = gpflow.kernels.SquaredExponential(variance=4.0, lengthscales=2.0)


def classifier(kernel, inducing_variable):
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Bernoulli(), inducing_variable, num_data=len(train)
    )
    idm.fit(
        model,
        (X[train], Y[train]),
        steps=STEPS,
        batch_size=100,
        optimizer=(gpflow.optimizers.NaturalGradient(0.1), 0.02),
        progress=False,
    )
    return model


models = {
    f"RBF, {NUM_PATCHES} images": classifier(rbf, centres),
    f"convolutional, {NUM_PATCHES} patches": classifier(kernel, patches),
}
print(f"{'':28}{'test errors':>12}{'test NLPD':>11}{'numbers in Z':>14}")
for name, model in models.items():
    wrong = np.mean((model.predict_y(X[test])[0].numpy() > 0.5) != Y[test])
    density = model.predict_log_density((X[test], Y[test])).numpy()
    size = np.size(model.inducing_variable.Z.numpy())
    print(f"{name:28}{100 * wrong:10.1f} %{-np.mean(density):11.3f}{size:14}")

# %% [markdown]
# The digits are small and centred, which suits the RBF kernel, so the gain is small. An inducing
# patch has 9 numbers, an inducing image 64. To see the gain for objects that move, run
# `python -m benchmarks.papers.convolutional.convolutional`.
#
# ## The inducing patches
#
# Each inducing patch z has one value u = g(z). A positive value is evidence for a 1 at places with
# a positive weight, and for a 0 at places with a negative weight. The model is whitened: its `q_mu`
# is the mean of variables v with u = L v, for the Cholesky factor L of Kuu.

# %%
model = models[f"convolutional, {NUM_PATCHES} patches"]
Kuu = gpflow.covariances.Kuu(model.inducing_variable, kernel, jitter=gpflow.config.default_jitter())
means = (np.linalg.cholesky(Kuu.numpy()) @ model.q_mu.numpy())[:, 0]
Z = model.inducing_variable.Z.numpy()
shown = np.argsort(means)[np.linspace(0, len(means) - 1, 8).astype(int)]

# %%
figure = plt.figure(figsize=(11, 3.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(2, 1))
for axis, i in zip(left.subplots(2, 4).ravel(), shown, strict=True):
    image = axis.imshow(Z[i].reshape(PATCH), cmap="gray", vmin=0, vmax=1)
    axis.set_title(f"E[u] = {means[i]:.1f}", fontsize=10)
    axis.set(xticks=[], yticks=[])
left.colorbar(image, ax=left.axes, label="brightness")
left.suptitle("eight inducing patches, in the order of their means")
weights = kernel.weights.numpy().reshape(kernel.grid.grid_shape)
axis = right.subplots()
limit = abs(weights).max()
image = axis.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
right.colorbar(image, label="weight")
axis.set(title="weights by place", xlabel="column of the patch", ylabel="row of the patch")
plt.show()

# %% [markdown]
# Left: the patches go from evidence for a 0 to evidence for a 1, at places with a positive weight.
# Right: the sign of the weights changes in the middle, which is dark in a 0 and bright in a 1.
