"""A process that builds, trains and predicts with models of one shape again and again.

It prints how many of the last models, and how many graphs of each, are alive after the garbage
collection. TensorFlow frees the graphs of functions that are gone when the next one is compiled.
"""

from __future__ import annotations

import gc
import json
import weakref

import gpflow
import numpy as np

import interdomain as idm

WARM, COUNTED = 2, 3
X = np.linspace(-1, 1, 60)[:, None]
Y = np.sin(5 * X)


def harmonics() -> tuple[gpflow.kernels.Kernel, idm.inducing_variables.SphericalHarmonics]:
    kernel = idm.kernels.SphericalMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=4)
    return idm.kernels.FiniteRank(kernel, features), features


def structured() -> gpflow.models.BayesianModel:
    return idm.models.StructuredSGPR((X, Y), *harmonics(), noise_variance=0.1)


def structured_waves() -> gpflow.models.BayesianModel:
    base = gpflow.kernels.Matern32(lengthscales=0.5)
    kernel = idm.kernels.Periodized.from_data(base, X)
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 30)
    prior = idm.kernels.FiniteRank(kernel, waves)
    return idm.models.StructuredSGPR((X, Y), prior, waves, noise_variance=0.1)


def dual_splines() -> gpflow.models.BayesianModel:
    splines = idm.inducing_variables.SplineFeatures.from_data(X, [20], 3)
    prior = idm.kernels.FiniteRank(gpflow.kernels.Matern32(lengthscales=0.5), splines)
    counts, likelihood = np.round(np.exp(1 + Y)), gpflow.likelihoods.Poisson()
    return idm.models.DualSVGP((X, counts), prior, likelihood, splines)


def vecchia() -> gpflow.models.BayesianModel:
    local = gpflow.kernels.Matern32(lengthscales=0.5)
    return idm.models.VecchiaSGPR((X, Y), local_kernel=local, num_neighbours=5)


def svgp() -> gpflow.models.BayesianModel:
    prior, features = harmonics()
    return gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), features, num_data=len(X))


def run(build) -> weakref.ref:  # type: ignore[no-untyped-def, type-arg]
    model = build()
    idm.fit(model, (X, Y) if build is svgp else None, steps=2, progress=False)
    idm.predict_in_batches(model, X, progress=False)
    reference = weakref.ref(model)
    del model
    gc.collect()  # the next model frees the graphs of this one
    return reference


def num_graphs() -> int:
    gc.collect()
    return sum(type(thing).__name__ == "FuncGraph" for thing in gc.get_objects())


found = {}
for build in (structured, structured_waves, dual_splines, vecchia, svgp):
    for _ in range(WARM):
        run(build)
    before = num_graphs()
    models = [run(build) for _ in range(COUNTED)]
    after = num_graphs()
    found[build.__name__] = [sum(m() is not None for m in models), (after - before) / COUNTED]
print(json.dumps(found))
