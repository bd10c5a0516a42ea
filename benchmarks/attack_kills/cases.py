"""What `attack_kills` kills: trainings that write checkpoints all the time.

Each function runs in a process of its own, says when it begins, and returns a digest of every bit
that it arrives at.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array

BEGINS = "begins"
NUM_DATA, NUM_COLUMNS = 500, 2


@dataclass(frozen=True)
class Case:
    """
    :ivar child: the function that is killed, and then run again.
    :ivar arguments: its arguments beside the folder.
    :ivar workers: how many processes run it together; one of them is killed.
    :ivar window: when it is killed, in parts of what it takes.
    """

    child: Callable[..., dict[str, Any]]
    arguments: Mapping[str, Any]
    workers: int = 1
    window: tuple[float, float] = (0.0, 1.0)


def trained(*, folder: str, model: str, steps: int, workers: int = 1) -> dict[str, Any]:
    """A training with natural gradients and Adam that writes a checkpoint after every step."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy() if workers > 1 else None
    import gpflow

    import interdomain as idm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(NUM_DATA, NUM_COLUMNS))
    Y = np.sin(2 * X[:, :1]) + 0.1 * rng.normal(size=(NUM_DATA, 1))
    with contextlib.nullcontext() if strategy is None else strategy.scope():
        built = MODELS[model](X)
    with _told() as told:
        result = idm.fit(
            built,
            (X, Y),
            batch_size=50,
            steps=steps,
            natural_gradient=0.1,
            checkpoint_dir=folder,
            every=1,
            resume=True,
            progress=False,
            strategy=strategy,
        )
    parameters = gpflow.utilities.parameter_dict(built)
    values = [parameters[name].unconstrained_variable.numpy() for name in sorted(parameters)]
    return {**told, "digest": digest(values), "from": result.first_step, "to": result.steps}


def newest(folder: str | Path) -> int | None:
    """The last step that is kept; None if nothing is."""
    steps = [int(path.stem.partition("-")[2]) for path in Path(folder).glob("step-*.index")]
    return max(steps, default=None)


def digest(values: Iterable[Array]) -> str:
    """Of every bit of some arrays."""
    found = hashlib.sha256()
    for value in values:
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:16]


@contextlib.contextmanager
def _told() -> Any:
    """Says that it begins; knows at the end what it took and which warnings there were."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        print(BEGINS, flush=True)
        start = time.perf_counter()
        yield found
        found["seconds"] = time.perf_counter() - start
    texts = [str(one.message) for one in caught]
    found["said"] = [text for text in texts if text.startswith("checkpoint_dir")]


def _svgp(X: Array) -> Any:
    import gpflow

    points = gpflow.inducing_variables.InducingPoints(X[:20].copy())
    kernel, likelihood = gpflow.kernels.Matern32(), gpflow.likelihoods.Gaussian(0.1)
    return gpflow.models.SVGP(kernel, likelihood, points, num_data=len(X))


def _additive(X: Array) -> Any:
    import gpflow

    import interdomain as idm

    kernel = gpflow.kernels.Matern32(active_dims=[0]) + gpflow.kernels.Matern52(active_dims=[1])
    points = gpflow.inducing_variables.InducingPoints
    inducing = idm.inducing_variables.SumInducingVariables(
        [points(X[:10].copy()), points(X[10:20].copy())]
    )
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    return idm.models.AdditiveSVGP(kernel, likelihood, inducing, num_data=len(X))


def _orthogonal(X: Array) -> Any:
    import gpflow

    import interdomain as idm

    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(NUM_COLUMNS))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, NUM_COLUMNS, 3)
    points = gpflow.inducing_variables.InducingPoints(X[:10].copy())
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    return idm.models.OrthogonalSVGP(kernel, likelihood, harmonics, points, num_data=len(X))


MODELS: dict[str, Callable[[Array], Any]] = {
    "svgp": _svgp,
    "additive_svgp": _additive,
    "orthogonal_svgp": _orthogonal,
}
CASES: dict[str, Case] = {
    **{name: Case(trained, {"model": name, "steps": 200}) for name in MODELS},
    "two_workers": Case(
        trained, {"model": "svgp", "steps": 100, "workers": 2}, workers=2, window=(0.5, 1.0)
    ),
}
