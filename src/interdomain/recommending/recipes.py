"""The models that :func:`recommend` knows, each as the script that a user would write.

What is shown is what is run. A script begins with what the model is, when it is worth a
try, and its cost. It makes ``model`` of X_train and Y_train, which are scaled, ``likelihood``, and
the names that :func:`.candidates.candidates_for` sets.
"""

IMPORTS = """\
import gpflow
import numpy as np
from scipy.cluster.vq import kmeans2

import interdomain as idm
"""

_MATERN = """
kernel = gpflow.kernels.Matern52(lengthscales=np.full(X_train.shape[1], X_train.shape[1] ** 0.5))"""

_CENTRES = """
centres, _ = kmeans2(X_train[:10_000], num_inducing, minit="points", seed=0)"""

_ZONAL = """
zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X_train.shape[1]))
features = idm.inducing_variables.SphericalHarmonics.for_kernel(
    zonal, X_train.shape[1], max_degree=2
)
kernel = idm.kernels.FiniteRank(zonal, features)"""

IN_ONE_PASS = """
model = idm.models.StructuredSGPR((X_train, Y_train), kernel, features, noise_variance=0.1)"""

IN_A_FEW_PASSES = """
model = idm.models.DualSVGP(
    (X_train, Y_train), kernel, likelihood, features, num_latent_gps=num_latent
)"""

_LOCAL = """
local = gpflow.kernels.Matern32(lengthscales=np.full(X_train.shape[1], X_train.shape[1] ** 0.5))"""

NEIGHBOURS = f"""\
# The nearest m rows: rough functions, or many rows and little noise; O(N m^3).{_LOCAL}
model = idm.models.VecchiaSGPR((X_train, Y_train), local_kernel=local, noise_variance=0.1)"""

EXACT = f"""\
# An exact GP: with so few rows nothing has to be approximated; O(N^3) a step.{_MATERN}
model = gpflow.models.GPR((X_train, Y_train), kernel, noise_variance=0.1)"""

POINTS = f"""\
# GPflow's SVGP with M inducing points, for any table; O(M^3) a step.{_MATERN}{_CENTRES}
model = gpflow.models.SVGP(
    kernel, likelihood, centres, num_latent_gps=num_latent, num_data=len(X_train)
)"""

ORTHOGONAL_POINTS = f"""\
# Points and points orthogonal to them; a quarter of the O(M^3) of one set.{_MATERN}{_CENTRES}
model = idm.models.OrthogonalSVGP(
    kernel,
    likelihood,
    gpflow.inducing_variables.InducingPoints(centres[::2]),
    gpflow.inducing_variables.InducingPoints(centres[1::2]),
    num_latent_gps=num_latent,
    num_data=len(X_train),
)"""

BLOCKS = """\
# A sum of smaller models, split by negations of principal components; O(T M^3) a step.
transforms = idm.transforms.PrincipalNegation.from_data(X_train, min(X_train.shape[1], 2))
base = gpflow.kernels.Matern52(lengthscales=X_train.shape[1] ** 0.5)
kernel = idm.kernels.HarmonicKernel(base, transforms)
each = round(num_inducing / kernel.num_components ** (1 / 3))  # as much work as one model
centres = idm.inducing_variables.HarmonicInducingPoints.from_data(kernel, X_train, each)
model = idm.models.AdditiveSVGP(
    kernel, likelihood, centres, num_latent_gps=num_latent, num_data=len(X_train)
)"""

PATCHES = """\
# Patches of images: what small parts look like; O(B P M + M^3) a step, P patches an image.
base = gpflow.kernels.SquaredExponential(variance=10.0, lengthscales=2.0)
side = min(5, *image_shape[:2])
kernel = idm.kernels.Convolutional(base, image_shape=image_shape, patch_shape=(side, side))
some = idm.inducing_variables.InducingPatches.from_data(kernel, X_train, num_inducing)
model = gpflow.models.SVGP(
    kernel, likelihood, some, num_latent_gps=num_latent, num_data=len(X_train)
)"""

HARMONICS = f"""\
# Harmonics chosen by the targets: all columns together; O(N M^2), once.{_ZONAL}"""

WAVES = """\
# Fourier features of a box: one to three columns; O(N M^2), once.
base = gpflow.kernels.Matern32(lengthscales=np.full(X_train.shape[1], 0.3))
box = idm.kernels.Periodized.from_data(base, X_train, margin=2)
features = idm.inducing_variables.BoxFourierFeatures.for_kernel(box, num_inducing)
kernel = idm.kernels.FiniteRank(box, features)"""

SPLINES = """\
# B-splines of a grid, sparse: maps with many details; O(N) once, then O(M^1.5) a step.
base = [gpflow.kernels.Matern32(lengthscales=0.3, active_dims=[k]) for k in range(X_train.shape[1])]
for one in base[1:]:
    gpflow.set_trainable(one.variance, False)  # the product has one
product = gpflow.kernels.Product(base) if len(base) > 1 else base[0]
features = idm.inducing_variables.SplineFeatures.from_data(
    X_train, num_splines, degree=2, margin=0.1  # new rows have to be in the box, too
)
kernel = idm.kernels.FiniteRank(product, features)"""

_OF_ALL_DEGREES = _ZONAL.replace("max_degree=2", "max_degree=max_degree")

HARMONICS_AND_NEIGHBOURS = f"""\
# Harmonics, and the nearest rows for what they leave; O(N M^2 + N m^3).{_OF_ALL_DEGREES}{_LOCAL}
model = idm.models.VecchiaSGPR(
    (X_train, Y_train), kernel, features, local_kernel=local, noise_variance=0.1
)"""

EFFECTS = """\
# A sum of effects of single columns and of pairs; O(N M^2), once.
model = idm.tables.fit_additive((X_train, Y_train), num_inducing, categorical=categorical).model"""

ALL_PAIRS = """\
# A sum of effects of single columns and of pairs; O(N M^2), once.
wanted = ["main", "pairs"] if X_train.shape[1] <= 8 else "main"
table = idm.tables.Additive.from_data(
    X_train, wanted, categorical=categorical, separate_lengthscales=True
)
features = idm.tables.AdditiveFeatures.for_kernel(table, num_inducing)
kernel = idm.kernels.FiniteRank(table, features)"""

EFFECTS_AND_HARMONICS = f"""\
# Effects of columns and pairs, and harmonics of all columns; O(N M^2).{_ZONAL}{IN_ONE_PASS}
idm.fit(model, num_inducing=num_inducing // 2)
effects = idm.tables.fit_additive(
    (X_train, Y_train), num_inducing // 2, categorical=categorical
).model
features = [effects.inducing_variable, model.inducing_variable]
model = idm.models.StructuredSGPR(
    (X_train, Y_train),
    effects.kernel + model.kernel,
    idm.inducing_variables.SumInducingVariables(features),
    likelihood=model.likelihood,
)"""

BY_MINIBATCHES = f"""\
# Harmonics by minibatches of B rows: for very many rows; O(B M^2) a step.{_ZONAL}{IN_A_FEW_PASSES}
idm.fit(model, steps=1)  # input scales, on a subset
features = idm.inducing_variables.SphericalHarmonics.for_data(zonal, X_train, num_inducing)
model = gpflow.models.SVGP(
    idm.kernels.FiniteRank(zonal, features),
    likelihood,
    features,
    q_diag=q_diag,
    num_latent_gps=num_latent,
    num_data=len(X_train),
)"""

_GLOBE = """
kernel = idm.kernels.GlobeMatern52()"""

_GLOBE_HARMONICS = """
globe = idm.kernels.GlobeMatern52()
features = idm.inducing_variables.SphericalHarmonics.for_kernel(globe, 2, max_degree=max_degree)
kernel = idm.kernels.FiniteRank(globe, features)"""

_GLOBE_LOCAL = """
local = gpflow.kernels.Matern32(lengthscales=0.1)  # chords, of radius 1"""

GLOBE_EXACT = f"""\
# An exact GP on the globe: with so few rows nothing has to be approximated; O(N^3) a step.{_GLOBE}
model = gpflow.models.GPR((X_train, Y_train), kernel, noise_variance=0.1)"""

GLOBE_NEIGHBOURS = f"""\
# The nearest m places by great circles: rough functions, or many rows and little noise; O(N m^3).\
{_GLOBE_LOCAL}
model = idm.models.VecchiaSGPR(
    (X_train, Y_train), local_kernel=local, local_inputs="degrees", noise_variance=0.1
)"""

GLOBE_HARMONICS = f"""\
# Harmonics of the globe, without a seam at the date line or the poles; O(N M^2), once.\
{_GLOBE_HARMONICS}"""

GLOBE_HARMONICS_AND_NEIGHBOURS = f"""\
# Harmonics of the globe, and the nearest places for what they leave; O(N M^2 + N m^3).\
{_GLOBE_HARMONICS}{_GLOBE_LOCAL}
model = idm.models.VecchiaSGPR(
    (X_train, Y_train),
    kernel,
    features,
    local_kernel=local,
    local_inputs="degrees",
    noise_variance=0.1,
)"""

GLOBE_POINTS = f"""\
# Stock inducing points with a kernel of the globe: the first thing to try; O(M^3) a step.\
{_GLOBE}{_CENTRES}
model = gpflow.models.SVGP(
    kernel, likelihood, centres, num_latent_gps=num_latent, num_data=len(X_train)
)"""
