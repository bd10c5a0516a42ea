"""One process of `distributed`: steps of `training.fit` on its cores, timed one by one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.processes import bind_to

INPUT_DIM = 8
NOISE_DEVIATION = 0.2
LENGTHSCALE = 2.0
NETWORK_COUNTERS = Path("/proc/net/dev")
LOOPBACK = "lo"


def timed_fits(
    *,
    engine: str,
    replicas: int,
    cores: Sequence[int],
    threads: int,
    model: str,
    batch_sizes: Sequence[int],
    num_data: int,
    warm_up: int,
    steps: int,
    seed: int,
    **sizes: int,
) -> dict[str, Any]:
    """A fit with each batch size: seconds of each of `steps` steps after `warm_up` others.

    To be run in a fresh process.

    :param engine: "none" (no strategy), "devices" (MirroredStrategy over logical devices) or
        "workers" (MultiWorkerMirroredStrategy; this process is one of those in TF_CONFIG).
    :param replicas: the number of devices, or of workers.
    :param cores: the cores that this process may use.
    :param threads: the number of operations that run at a time, each with one thread.
    :param sizes: the sizes of the model, see `build_model`.
    """
    bind_to(cores)
    strategy = make_strategy(engine, replicas, threads)  # before any operation
    import interdomain as idm
    from benchmarks._lib.runner import set_seeds

    X, Y = smooth_data(num_data, seed)
    fits = []
    for batch_size in batch_sizes:
        set_seeds(seed)
        with contextlib.nullcontext() if strategy is None else strategy.scope():
            built = build_model(model, num_data=num_data, seed=seed, **sizes)
        clock = Clock()
        idm.fit(
            built,
            (X, Y),
            batch_size=batch_size,
            steps=warm_up + steps + 1,  # the last is not timed: a fit's end has work of its own
            seed=seed,
            natural_gradient=False,
            callbacks=[clock],
            every=1,
            progress=False,
            strategy=strategy,
        )
        seconds, carried = clock.between(warm_up, warm_up + steps)
        fits.append(
            {"seconds": seconds, "loopback_bytes": None if carried is None else carried / steps}
        )
    return {
        "replicas": 1 if strategy is None else strategy.num_replicas_in_sync,
        "numbers": int(sum(np.prod(v.shape) for v in built.trainable_variables)),
        "fits": fits,
    }


def make_strategy(engine: str, replicas: int, threads: int) -> Any:
    """The strategy of an engine, in a process that uses this number of threads.

    :raises ValueError: if there is no such engine.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    if engine == "none":
        return None
    if engine == "devices":
        (cpu,) = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * replicas
        )
        return tf.distribute.MirroredStrategy([f"CPU:{k}" for k in range(replicas)])
    if engine == "workers":
        return tf.distribute.MultiWorkerMirroredStrategy()
    raise ValueError(f"engine is {engine!r}: pass 'none', 'devices' or 'workers'")


def smooth_data(num_data: int, seed: int) -> tuple[Array, Array]:
    """Rows of 8 inputs, and a smooth function of them with noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(num_data, INPUT_DIM))
    directions = generator.normal(size=(INPUT_DIM, 3)) / np.sqrt(INPUT_DIM)
    f = np.sin(2.0 * X @ directions).sum(axis=1, keepdims=True)
    return X, f + NOISE_DEVIATION * generator.normal(size=(num_data, 1))


def build_model(
    name: str,
    *,
    num_data: int,
    seed: int,
    max_degree: int = 0,
    components: int = 0,
    num_inducing: int = 0,
) -> Any:
    """ "svgp": SVGP with all harmonics up to `max_degree`; "hvgp": HVGP with `num_inducing` points
    in each of `components` blocks.

    :raises ValueError: if there is no such model.
    """
    import gpflow

    import interdomain as idm
    from benchmarks._lib.negations import principal_negations

    likelihood = gpflow.likelihoods.Gaussian(NOISE_DEVIATION**2)
    if name == "svgp":
        kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(INPUT_DIM))
        harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(
            kernel, INPUT_DIM, max_degree
        )
        return gpflow.models.SVGP(kernel, likelihood, harmonics, num_data=num_data)
    if name == "hvgp":
        Z = np.random.default_rng(seed + 1).normal(size=(components, num_inducing, INPUT_DIM))
        stationary = gpflow.kernels.Matern32(lengthscales=LENGTHSCALE)
        transforms = principal_negations(components, seed, columns=INPUT_DIM)
        return idm.models.HVGP(stationary, likelihood, Z, transforms, num_data=num_data)
    raise ValueError(f"model is {name!r}: pass 'svgp' or 'hvgp'")


class Clock:
    """A callback of `fit`: when each step ended, and the bytes that loopback had carried then."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bytes: list[int | None] = []

    def __call__(self, step: int, model: Any) -> None:
        self.bytes.append(carried_bytes())
        self.times.append(time.perf_counter())

    def between(self, first: int, last: int) -> tuple[list[float], int | None]:
        """Seconds of each of the steps first + 1, ..., last, and the bytes during all of them."""
        times = self.times[first - 1 : last]
        before, after = self.bytes[first - 1], self.bytes[last - 1]
        carried = None if before is None or after is None else after - before
        return [later - earlier for earlier, later in zip(times, times[1:], strict=False)], carried


def carried_bytes(counters: Path = NETWORK_COUNTERS, interface: str = LOOPBACK) -> int | None:
    """The bytes that an interface has sent until now; None where the system does not count them."""
    try:
        lines = counters.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        name, colon, numbers = line.partition(":")
        if colon and name.strip() == interface:
            return int(numbers.split()[8])  # after eight numbers about what was received
    return None
