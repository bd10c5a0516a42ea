"""The kernels that are fitted to a target, at their random initial parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.runner import Configuration
from benchmarks.kernel_recovery.targets import TARGETS, TESTED_GRID, Target, target_kernel

KERNELS = ("hmk", "sm")


def stationary_size(num_components: int, num_frequencies: int) -> int:
    """The number of peaks with as many trainable numbers as a harmonizable mixture: each component
    has a centre, an envelope, an excess, Q frequencies and a complex [Q, Q]; a peak has three."""
    Q = num_frequencies
    return round(num_components * (3 + Q + 2 * Q**2) / 3)


def build_kernel(configuration: Configuration) -> Any:
    """An approximation at its random start."""
    import interdomain as idm

    target = TARGETS[configuration["target"]]
    generator = np.random.default_rng(configuration["seed"])
    P, Q = configuration["num_components"], configuration["num_frequencies"]
    width = target.high - target.low
    power = np.diag(np.asarray(target_kernel(configuration["target"])(target.grid(TESTED_GRID))))
    if configuration["kernel"] == "sm":
        return idm.kernels.SpectralMixture(
            [
                idm.kernels.SpectralComponent(
                    generator.uniform(0.0, 5.0, size=1),
                    variance=power.mean() / P,
                    lag=precision_of_lag(width * log_uniform(generator, 0.03, 1.0)),
                )
                for _ in range(P)
            ]
        )
    components = []
    for centre, spacing in zip(*spread_centres(target, P, generator), strict=True):
        root = generator.normal(size=(Q, Q)) + 1j * generator.normal(size=(Q, Q))
        amplitudes = root @ root.conj().T
        wanted = 0.5 * np.interp(centre, target.grid(TESTED_GRID)[:, 0], power)
        # The window of an input is exp(-pi^2 envelope y^2), of standard deviation `spacing`.
        envelope = 1 / (2 * math.pi**2 * spacing**2)
        excess = precision_of_lag(spacing * log_uniform(generator, 0.3, 3.0))
        components.append(
            idm.kernels.HarmonizableComponent(
                generator.uniform(-0.5, 0.5, size=(Q, 1)) / spacing,
                amplitudes=amplitudes * wanted / np.trace(amplitudes).real,
                centre=centre,
                envelope=envelope,
                lag=excess + envelope / 4,
            )
        )
    return idm.kernels.HarmonizableMixture(components)


def spread_centres(
    target: Target, count: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """One random centre in each of `count` cells, and the widths of the cells; for fractional
    Brownian motion, which varies with 1 / t, the cells are equal in log t."""
    places = (np.arange(count) + 0.5 + 0.3 * generator.uniform(-1.0, 1.0, count)) / count
    ends = np.arange(count + 1) / count
    if target.hurst is None:
        return target.low + (target.high - target.low) * places, np.full(
            count, (target.high - target.low) / count
        )
    ratio = target.high / target.low
    return target.low * ratio**places, target.low * np.diff(ratio**ends)


def precision_of_lag(lengthscale: float) -> float:
    """The s of exp(-2 pi^2 s t^2) that is a squared exponential of this lengthscale."""
    return 1 / (4 * math.pi**2 * lengthscale**2)


def log_uniform(generator: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(generator.uniform(np.log(low), np.log(high))))
