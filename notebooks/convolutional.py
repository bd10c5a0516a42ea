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
# # Convolutional kernels: inducing patches
#
# A convolutional GP sums the responses of one unknown function g to all patches of an image (van
# der Wilk, Rasmussen and Hensman 2017, "Convolutional Gaussian Processes"). Its inducing variables
# are values of g, so an inducing input is a patch and not an image: smaller, and with one sum over
# patches in each covariance instead of two.
#
# Shown on the digits that ship with scikit-learn, 8 x 8 pixels each: a classification beside one
# with an RBF kernel, what the inducing patches look like, a sum of both kernels and what each part
# of it explains, kernels that are invariant to a transformation, and a convolutional kernel split
# by the symmetry of its patches.

# %%
import os
from pathlib import Path

import gpflow
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import interdomain as idm

SMOKE = os.environ.get("INTERDOMAIN_SMOKE") == "1"
rng = np.random.default_rng(0)
output = Path("notebooks" if Path("notebooks").is_dir() else ".") / "output"
output.mkdir(exist_ok=True)

# %%
IMAGE, PATCH = (8, 8), (3, 3)
digits = load_digits()
X, Y = digits.data / 16.0, digits.target[:, None].astype(float)
order = rng.permutation(len(X))
train, test = np.split(order[:200] if SMOKE else order, [150 if SMOKE else 1200])
print(f"{len(train)} digits to learn from, {len(test)} to test on")

# %% [markdown]
# ## Ten digits
#
# Two SVGPs that differ in the kernel and its inducing variables only: M images under an RBF kernel,
# M patches under the weighted convolutional kernel, which has a weight for each patch of an image.
# Both are stock GPflow models with ten latent functions, and get the same steps on the same
# minibatches. A convolutional function is a mean over patches, so g needs more variance than f.

# %%
M = 10 if SMOKE else 100


def rbf(variance=4.0):
    return gpflow.kernels.SquaredExponential(variance=variance, lengthscales=2.0)


def convolutional(variance=50.0):
    on_patches = gpflow.kernels.SquaredExponential(variance=variance)
    return idm.kernels.Convolutional(on_patches, IMAGE, PATCH)


def images(number, rows):
    centres = KMeans(number, n_init=1, random_state=0).fit(rows).cluster_centers_
    return gpflow.inducing_variables.InducingPoints(centres)


def patches(number, rows):
    return idm.inducing_variables.InducingPatches.from_data(convolutional(), rows, number)


def fitted(model, rows, steps, natural_gradient=0.1):
    idm.training.fit(
        model,
        (X[rows], targets[rows]),
        steps=steps,
        batch_size=min(100, len(rows)),
        natural_gradient=natural_gradient,
        learning_rate=0.02,
        progress=False,
    )
    return model


def errors(model, rows):
    """Percentage of wrong answers, and negative log predictive probability."""
    mean = model.predict_y(X[rows])[0].numpy()
    answers = np.argmax(mean, axis=1) if mean.shape[1] > 1 else mean[:, 0] > 0.5
    wrong = 100 * np.mean(answers != targets[rows, 0])
    density = model.predict_log_density((X[rows], targets[rows])).numpy()
    return f"{wrong:8.2f} %{-np.mean(density):9.3f}"


# %%
targets = Y
print(f"{'':28}{'error':>10}{'nlpp':>9}")
for name, kernel, inducing_variable in [
    (f"RBF, {M} images", rbf(), images(M, X[train])),
    (f"convolutional, {M} patches", convolutional(), patches(M, X[train])),
]:
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.MultiClass(10),
        inducing_variable,
        num_latent_gps=10,
        num_data=len(train),
    )
    # Adam alone: natural gradients need a likelihood that is log-concave.
    fitted(model, train, 5 if SMOKE else 1000, natural_gradient=False)
    print(f"{name:28}{errors(model, test)}")

# %% [markdown]
# The digits are small and all in the same place, which suits the RBF kernel. An inducing patch has
# 9 numbers where an inducing image has 64.
#
# ## What the patches say
#
# With two classes there is one function g, and each inducing patch z has one value u = g(z): how
# much it speaks for a 1, or for a 0 at places with a negative weight. The model is whitened, so its
# `q_mu` is the mean of the white variables v with u = L v, L being the Cholesky factor of Kuu.

# %%
targets = (Y == 1.0).astype(float)
binary = [rows[np.isin(Y[rows, 0], [0.0, 1.0])] for rows in (train, test)]
STEPS = 5 if SMOKE else 300


def classifier(kernel, inducing_variable):
    likelihood = gpflow.likelihoods.Bernoulli()
    num_data = len(binary[0])
    return gpflow.models.SVGP(kernel, likelihood, inducing_variable, num_data=num_data)


def inducing_means(model):
    jitter = gpflow.config.default_jitter()
    Kuu = gpflow.covariances.Kuu(model.inducing_variable, model.kernel, jitter=jitter)
    return np.linalg.cholesky(Kuu.numpy()) @ model.q_mu.numpy()


number = 8 if SMOKE else 32
kernel = convolutional()
model = classifier(kernel, patches(number, X[binary[0]]))
fitted(model, binary[0], STEPS)
print(f"0 or 1, {number} patches: error and nlpp {errors(model, binary[1])}")

# %%
means = inducing_means(model)[:, 0]
ranks = np.argsort(means)
figure, axes = plt.subplots(2, number // 2, figsize=(12, 2.2), layout="constrained")
for axis, i in zip(axes.ravel(), ranks, strict=True):
    axis.imshow(model.inducing_variable.Z.numpy()[i].reshape(PATCH), cmap="gray", vmin=0, vmax=1)
    axis.set_title(f"{means[i]:.1f}", fontsize="x-small")
    axis.axis("off")
figure.suptitle("inducing patches, ordered by E[u]", fontsize="small")
figure.savefig(output / "convolutional_patches.png", dpi=120)
print(f"E[u] from {means.min():.1f} to {means.max():.1f}")
print(f"figure: {output / 'convolutional_patches.png'}")

# %% [markdown]
# The weights tell where in the image patches count, and with which sign.

# %%
weights = kernel.weights.numpy().reshape(kernel.grid.grid_shape)
figure, axis = plt.subplots(figsize=(3, 2.6), layout="constrained")
figure.colorbar(
    axis.imshow(weights, cmap="RdBu_r", vmin=-abs(weights).max(), vmax=abs(weights).max())
)
axis.set(title="weights of the patches", xticks=[], yticks=[])
figure.savefig(output / "convolutional_weights.png", dpi=120)
print(f"weights from {weights.min():.2f} to {weights.max():.2f}")
print(f"figure: {output / 'convolutional_weights.png'}")

# %% [markdown]
# ## A sum, and what each part explains
#
# A function of patches alone may be too narrow; adding an RBF kernel on whole images leaves room
# for the rest. The sum has inducing patches for one part and inducing images for the other
# (section 3.3 of the paper), in a stock `SVGP`. As both have their own variables, the posterior
# mean of each part can be had by itself.

# %%
whole = gpflow.kernels.Sum([convolutional(), rbf(variance=1.0)])
blocks = idm.inducing_variables.SumInducingVariables(
    [patches(number, X[binary[0]]), images(number, X[binary[0]])]
)
model = classifier(whole, blocks)
fitted(model, binary[0], STEPS)
print(f"0 or 1, {number} patches + {number} images: error and nlpp {errors(model, binary[1])}")


def parts_of(model, rows):
    """Prior variances and posterior means of the summands at some images."""
    u, first = inducing_means(model), 0
    for part, block in zip(
        model.kernel.kernels, model.inducing_variable.inducing_variables, strict=True
    ):
        last = first + int(block.num_inducing)
        jitter = gpflow.config.default_jitter()
        Kuu = gpflow.covariances.Kuu(block, part, jitter=jitter).numpy()
        Kuf = gpflow.covariances.Kuf(block, part, X[rows]).numpy()
        mean = Kuf.T @ np.linalg.solve(Kuu, u[first:last])
        yield part(X[rows], full_cov=False).numpy(), mean[:, 0]
        first = last


priors, posteriors = zip(*parts_of(model, binary[1]), strict=True)
total = model.predict_f(X[binary[1]])[0].numpy()[:, 0]
print(f"the parts' means sum to the model's: {np.max(np.abs(sum(posteriors) - total)):.0e}")
print(f"{'':16}{'prior variance':>16}{'variance of the mean':>22}")
for name, prior, mean in zip(["convolutional", "RBF"], priors, posteriors, strict=True):
    print(f"{name:16}{np.mean(prior):16.2f}{np.var(mean):22.2f}")
print(f"{'sum':16}{np.mean(sum(priors)):16.2f}{np.var(total):22.2f}")

# %% [markdown]
# The last column is the variance over the test images; that of the sum has the parts' covariance
# as well.
#
# ## Kernels that are invariant
#
# The same construction with the images of x under a group in place of its patches: f is the mean
# of g over them, so f does not change under the group whatever the kernel of g is (Appendix D of
# the paper). Here half of the digits, chosen at random, are turned into negatives, and f shall not
# see the difference. `OrbitInducingPoints` are values of g.

# %%
negative = rng.random(len(X)) < 0.5
bright = X.copy()
X = np.where(negative[:, None], 1.0 - bright, bright)
negation = idm.transforms.Negation(list(range(X.shape[1])), centre=0.5)
invariant = idm.kernels.Invariant(rbf(), negation)
centres = images(number, X[binary[0]])
print(f"{'':28}{'error':>10}{'nlpp':>9}{'|f(x) - f(1 - x)|':>20}")
for name, kernel, inducing_variable in [
    ("RBF", rbf(), images(number, X[binary[0]])),
    ("invariant", invariant, idm.inducing_variables.OrbitInducingPoints(centres.Z.numpy())),
]:
    model = fitted(classifier(kernel, inducing_variable), binary[0], STEPS)
    f, of_negative = (model.predict_f(some)[0].numpy() for some in (X[binary[1]], 1 - X[binary[1]]))
    difference = np.max(np.abs(f - of_negative))
    print(f"{name:28}{errors(model, binary[1])}{difference:20.0e}")
X = bright

# %% [markdown]
# ## Patches and their mirror images
#
# The kernel on patches does not change when both are flipped, so g is a sum of an even and an odd
# function, and so is what is made of their responses (Sun et al. 2021, section 6.4).
# `HarmonicKernel` of a convolutional kernel makes the parts, and `HVGP` gives each its own inducing
# patches: two blocks of half the size.

# %%
flip = idm.transforms.ImageFlip(PATCH, axis=1)
Z = patches(number, X[binary[0]]).Z.numpy().reshape(2, number // 2, -1)
model = idm.models.HVGP(
    convolutional(), gpflow.likelihoods.Bernoulli(), Z, flip, num_data=len(binary[0])
)
parts = model.kernel.kernels
few = X[binary[1]][:10]
difference = np.max(np.abs(sum(part(few).numpy() for part in parts) - model.kernel(few).numpy()))
print(f"{len(parts)} parts; they sum to the kernel: largest difference {difference:.0e}")

# %%
if not SMOKE:  # compiling takes longer than a few steps
    fitted(model, binary[0], STEPS)
    print(f"0 or 1, 2 x {number // 2} patches: error and nlpp {errors(model, binary[1])}")
for name, part in zip(["even", "odd"], model.kernel.kernels, strict=True):
    variance = np.mean(part(X[binary[1]], full_cov=False).numpy())
    print(f"{name:5} part: prior variance {variance:.2f}")
