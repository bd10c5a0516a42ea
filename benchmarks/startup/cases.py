"""The fits that `startup` times, and the clock of one fresh process.

At its top level this module imports only the standard library. Any other import would shorten the
measured times of `import gpflow` and `import interdomain`.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

Times = dict[str, float]  # "seconds" of the wall clock, "cpu_seconds" of all threads together

# In the order of the imports: each time excludes the modules that are imported before.
LIBRARIES = ("tensorflow", "gpflow", "interdomain")
CASES = {
    "svgp": "gpflow's SVGP, Matern-3/2 with ARD, points",
    "svgp_natural": "gpflow's SVGP, Matern-3/2 with ARD, points, natural gradients for q",
    "harmonics": "SVGP, spherical harmonics, full q",
    "harmonics_diagonal": "SVGP, spherical harmonics, diagonal q",
    "hvgp": "HVGP, 8 parts with points of their own",
    "orthogonal": "OrthogonalSVGP, harmonics and orthogonal points",
    "convolutional": "SVGP, Convolutional on 28 x 28 images, patches",
    "harmonizable": "gpflow's SGPR, HarmonizableMixture, Fourier features, L-BFGS",
    "out_of_core": "StructuredSGPR, spherical harmonics",
}
INPUT_DIM = 8
NEGATIONS = 3  # in HVGP: 2^3 parts
IMAGE, PATCH = (28, 28), (5, 5)
IMAGES_AT_ONCE = 50
COMPONENTS, FREQUENCIES, FEATURES = 4, 2, 5  # of the mixture; frequencies of each component
NATURAL_GRADIENT = 0.1


def measure(*, case: str, seed: int, **sizes: int) -> dict[str, Any]:
    """The times of the imports, of the first step after them, and of two more fits of the model.

    Run it in a fresh process; `sizes` are those of `startup.SIZES`. The data are made before the
    clock starts, and the model after that.
    """
    imports = {name: timed(importlib.import_module, name)[1] for name in LIBRARIES}
    data = random_images(sizes, seed) if case == "convolutional" else random_rows(sizes, seed)
    with counted_graphs() as graphs_until_now:
        model, building = timed(build_model, case, data, sizes, seed)
        _, fitting = timed(fit_once, case, model, data, sizes)
        result = {
            "imports": imports,
            "first": {
                **{name: building[name] + fitting[name] for name in building},
                "build_seconds": building["seconds"],
                "graphs": graphs_until_now(),
            },
        }
        from benchmarks._lib.memory import resident_bytes

        for name in ("second", "third"):
            gc.collect()
            graphs, resident = graphs_until_now(), resident_bytes()
            _, times = timed(fit_once, case, model, data, sizes)
            gc.collect()
            result[name] = {
                **times,
                "graphs": graphs_until_now() - graphs,
                "growth_bytes": resident_bytes() - resident,
            }
    return result


def timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, Times]:
    """The value of `function`, and its time."""
    cpu, start = time.process_time(), time.perf_counter()
    returned = function(*arguments)
    seconds = time.perf_counter() - start
    return returned, {"seconds": seconds, "cpu_seconds": time.process_time() - cpu}


@contextlib.contextmanager
def counted_graphs() -> Iterator[Callable[[], int]]:
    """A counter of the graphs that TensorFlow has made: one for each function that it traces, for
    each branch of a condition, and for the condition and the body of a loop."""
    import tensorflow as tf

    make, made = tf.Graph.__init__, 0

    def make_and_count(graph: Any, *arguments: Any, **named: Any) -> None:
        nonlocal made
        made += 1
        make(graph, *arguments, **named)

    tf.Graph.__init__ = make_and_count
    try:
        yield lambda: made
    finally:
        tf.Graph.__init__ = make


def random_rows(sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
    """Normal inputs, and a smooth function of them with a little noise."""
    import numpy as np

    generator = np.random.default_rng(seed)
    X = generator.normal(size=(sizes["num_data"], INPUT_DIM))
    smooth = np.sin(X @ generator.normal(size=(INPUT_DIM, 1)) / 2)
    return X, smooth + 0.1 * generator.normal(size=smooth.shape)


def random_images(sizes: dict[str, int], seed: int) -> tuple[Any, Any]:
    """Rows of pixels between 0 and 1; the class is 1 if the left half is the lighter one."""
    import numpy as np

    pixels = np.random.default_rng(seed).uniform(size=(sizes["num_images"], *IMAGE))
    left, right = np.split(pixels, 2, axis=2)
    lighter = left.mean(axis=(1, 2)) > right.mean(axis=(1, 2))
    return pixels.reshape(len(pixels), -1), lighter[:, None].astype(float)


def build_model(case: str, data: tuple[Any, Any], sizes: dict[str, int], seed: int) -> Any:
    """The model of one case at its initial parameters."""
    import gpflow
    import numpy as np
    from gpflow.inducing_variables import InducingPoints

    import interdomain as idm

    X, _ = data
    ones, settings = np.ones(INPUT_DIM), {"num_data": len(X)}
    gaussian = gpflow.likelihoods.Gaussian(variance=0.1)
    if case in ("svgp", "svgp_natural"):
        kernel = gpflow.kernels.Matern32(lengthscales=ones)
        points = InducingPoints(X[: sizes["num_inducing"]])
        return gpflow.models.SVGP(kernel, gaussian, points, **settings)
    if case == "hvgp":
        transforms = idm.transforms.PrincipalNegation.from_data(X, NEGATIONS)
        Z = X[: 2**NEGATIONS * sizes["part_size"]].reshape(2**NEGATIONS, -1, INPUT_DIM)
        return idm.models.HVGP(gpflow.kernels.Matern32(), gaussian, Z, transforms, **settings)
    if case == "convolutional":
        base = gpflow.kernels.SquaredExponential()
        kernel = idm.kernels.Convolutional(base, IMAGE, PATCH)
        patches = idm.inducing_variables.InducingPatches.from_data(
            kernel, X, sizes["num_patches"], seed=seed
        )
        return gpflow.models.SVGP(kernel, gpflow.likelihoods.Bernoulli(), patches, **settings)
    if case == "harmonizable":
        kernel = random_mixture(seed)
        features = idm.inducing_variables.HarmonizableFourierFeatures.for_kernel(kernel, FEATURES)
        return gpflow.models.SGPR(data, kernel, features, noise_variance=0.1)
    kernel = idm.kernels.SphericalMatern32(weight_variances=ones)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(
        kernel, INPUT_DIM, max_degree=sizes["max_degree"]
    )
    if case == "orthogonal":
        points = InducingPoints(X[: sizes["num_inducing"]])
        return idm.models.OrthogonalSVGP(kernel, gaussian, harmonics, points, **settings)
    if case == "out_of_core":
        return idm.models.StructuredSGPR(
            data, kernel, harmonics, noise_variance=0.1, progress=False
        )
    diagonal = {"harmonics": False, "harmonics_diagonal": True}[case]
    return gpflow.models.SVGP(kernel, gaussian, harmonics, q_diag=diagonal, **settings)


def random_mixture(seed: int) -> Any:
    """Components with random centres: `from_data` would search the data, which takes seconds."""
    import numpy as np

    import interdomain as idm

    generator = np.random.default_rng(seed)
    return idm.kernels.HarmonizableMixture(
        [
            idm.kernels.HarmonizableComponent(
                generator.normal(scale=0.2, size=(FREQUENCIES, INPUT_DIM)),
                centre=generator.normal(size=INPUT_DIM),
            )
            for _ in range(COMPONENTS)
        ]
    )


def fit_once(case: str, model: Any, data: tuple[Any, Any], sizes: dict[str, int]) -> Any:
    """One step of training, by the call of a user.

    The first `fit` fits a subset and computes the sums of all rows. At the second call the features
    are fixed, and only the fit on these sums remains.
    """
    import gpflow

    import interdomain as idm

    if case == "out_of_core":
        return idm.fit(model, steps=1, progress=False, options={"subset_steps": 1})
    if case == "harmonizable":
        return idm.fit(model, steps=1, progress=False)
    batch_size = IMAGES_AT_ONCE if case == "convolutional" else sizes["batch_size"]
    natural = gpflow.optimizers.NaturalGradient(NATURAL_GRADIENT)
    optimizer = natural if case == "svgp_natural" else (None, 0.01)
    return idm.fit(model, data, batch_size=batch_size, steps=1, progress=False, optimizer=optimizer)
