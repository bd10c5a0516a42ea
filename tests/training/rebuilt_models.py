"""A process that builds, trains and predicts with models of one shape again and again.

It prints how many of the last models, and how many graphs of each, are alive after the garbage
collection. TensorFlow frees the graphs of functions that are gone when the next one is compiled.
"""

import gc
import json
import weakref
from typing import Any

import gpflow
import numpy as np
from gpflow.kernels import Matern32

import interdomain as idm
from tests.parts import Parts, finite_rank, with_harmonics, with_waves

WARM, COUNTED = 1, 2
X = np.linspace(-1, 1, 60)[:, None]
Y = np.sin(5 * X)


def harmonics() -> Parts:
    return finite_rank(*with_harmonics(idm.kernels.SphericalMatern52(), 4, 1))


def structured() -> Any:
    return idm.models.StructuredSGPR((X, Y), *harmonics(), noise_variance=0.1)


def structured_waves() -> Any:
    parts = finite_rank(*with_waves(Matern32(lengthscales=0.5), X, 30))
    return idm.models.StructuredSGPR((X, Y), *parts, noise_variance=0.1)


def dual_splines() -> Any:
    splines = idm.inducing_variables.SplineFeatures.from_data(X, [20], 3)
    prior = idm.kernels.FiniteRank(Matern32(lengthscales=0.5), splines)
    counts, likelihood = np.round(np.exp(1 + Y)), gpflow.likelihoods.Poisson()
    return idm.models.DualSVGP((X, counts), prior, likelihood, splines)


def vecchia() -> Any:
    local = Matern32(lengthscales=0.5)
    return idm.models.VecchiaSGPR((X, Y), local_kernel=local, num_neighbours=5)


def svgp() -> Any:
    prior, features = harmonics()
    return gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), features, num_data=len(X))


def run(build: Any) -> Any:
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
