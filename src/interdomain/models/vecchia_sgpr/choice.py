"""The choice of a local kernel: kernels are trained on one sample of rows, compared on another."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel, Matern12, Matern32, Matern52

from ..._arguments import Array
from ...core.parameters import frozen
from ...core.two_scales import TwoScales
from ...training.lbfgs import LBFGS
from ...training.losses import NumericalBreakdown
from ...training.results import LocalKernels, NonFiniteError
from ...training.run import Plan, train
from ..noise import least_noise_variance, noise_variance_of
from .conditionals import Conditionals
from .local_kernel import LocalKernel
from .model import VecchiaSGPR
from .samples import Samples
from .starts import assign, is_default, starts

_ROWS_OF_START, _ROWS, _STEPS_OF_START, _STEPS = 128, 400, 6, 25
"""Rows for each thinning, and steps of L-BFGS: at each start, and for each kernel after that."""

_JUDGED = 1_024
"""Rows for each thinning on which kernels are compared."""

_CLEARLY = 0.05
"""The gain in nats a row on unthinned rows above which training restarts from another start."""

_LEAST_VARIANCE = 100.0
"""The least variance of residuals at the starts, divided by the lower bound of the noise variance.
It provides a start if all residuals are zero."""

_FACTOR = 4.0
"""The ratio of successive noise levels that are tried."""

Rows: TypeAlias = tuple[Array, ...]
"""Rows with their neighbours: see :class:`.Given`."""

KERNELS: Mapping[str, Callable[..., Kernel]] = {
    kind.__name__: kind for kind in (Matern32, Matern12, Matern52, TwoScales)
}
"""The kernels that are compared. Starts are tried with the first kernel; all begin at its best."""


class LocalTraining:
    """The training of a model's local kernel and noise, on densities of rows given their
    neighbours.

    :ivar compared: The comparison of kernels; None if the kernel was given.
    :ivar merges_nearby: Whether searches merge nearby rows. False at first: an untrained kernel
        could merge rows between which the function varies.
    """

    merges_nearby = False

    def __init__(self, model: VecchiaSGPR, seed: int) -> None:
        self._model, self._seed, local = model, seed, model.local
        self.compared: LocalKernels | None = None
        self._chooses = model.chooses_kernel
        self._kernels = {type(local.kernel).__name__: local.kernel}
        if self._chooses:
            ones = np.ones(local.kernel.lengthscales.shape)
            seen = {"lengthscales": ones, "active_dims": local.kernel.active_dims}
            self._kernels = {name: make(**seen) for name, make in KERNELS.items()}
        self._trained = {
            name: Conditionals(LocalKernel(kernel, local.inputs), model.likelihood)
            for name, kernel in self._kernels.items()
        }
        self._name = next(iter(self._kernels))

    @property
    def conditionals(self) -> Conditionals:
        """The conditional densities under the kernel of the model."""
        return self._trained[self._name]

    def give(self) -> None:
        """Assign the trained kernel and noise to the model."""
        self._model.local_kernel = self._kernels[self._name]
        self.conditionals.give(self._model.local_kernel, self._model.likelihood)

    def take(self) -> None:
        """Begin with the present parameters of the model."""
        names = [
            name for name, kernel in self._kernels.items() if kernel is self._model.local_kernel
        ]
        self._name = names[0]
        self.conditionals.take(self._model.local_kernel, self._model.likelihood)

    def start(self, samples: Samples, *, choose: bool = True) -> None:
        """Begin at the best of several starts, with the best kernel if no kernel was given.

        :param choose: Whether kernels are compared now.
        """
        self._name, self.merges_nearby = next(iter(self._kernels)), False
        self._from_best_start(samples)
        self.give()
        self.search()
        rows = samples.draw(_ROWS, self._seed, samples.levels)
        if self._chooses and choose:
            levels = samples.levels_compared
            self._choose(rows, samples.draw(_JUDGED, self._seed + 1, levels), levels)
        else:
            self.train(rows, _STEPS)
        self.give()

    def search(self) -> None:
        """Find neighbours for the present parameters."""
        self._model.search_rows(near=self.merges_nearby)

    def _from_best_start(self, samples: Samples) -> None:
        """Find the best of several noise levels and lengthscales, after a few steps from each."""
        model, conditionals, total = self._model, self.conditionals, self._total(samples)
        points = model.local.points(model.ordered.merged.X)
        first, *others = starts(points, model.num_neighbours)
        from_rows: list[tuple[float, Array] | None] = [first, *others]
        if self._chooses or is_default(model.local_kernel):
            assign(conditionals, *first, total)
            self.give()
            self.search()
        else:  # a second fit also starts from the present values
            conditionals.take(model.local_kernel, model.likelihood)
            from_rows = [None, *from_rows]
        trained = samples.draw(_ROWS_OF_START, 0, samples.levels)
        judged = samples.draw(_ROWS_OF_START, 1, samples.levels)
        if not self._try(from_rows, total, trained, judged):
            raise NumericalBreakdown(
                "no start of the local kernel has a finite density; are rows repeated whose "
                "targets differ, with a noise variance that is fixed and too small?"
            )

    def _total(self, samples: Samples) -> float:
        """The variance at the starts: the mean square of the residuals, or more if that is zero."""
        least = _LEAST_VARIANCE * least_noise_variance(self._model.likelihood)
        return max(samples.mean_square, least)

    def _try(
        self, tried: Iterable[tuple[float, Array] | None], total: float, rows: Rows, judged: Rows
    ) -> bool:
        """Make a few steps on ``rows`` from each start, and assign the values under which the rows
        ``judged`` have the highest density.

        :param tried: The starts, as :func:`.starts` gives them; None for the present values.
        :param total: The mean square of the residuals.
        :return: Whether any density is finite; if not, values are those of the last start.
        """
        conditionals, found = self.conditionals, list[tuple[float, list[Array]]]()
        for start in tried:
            if start is not None:
                assign(conditionals, *start, total)
            with contextlib.suppress(NonFiniteError):
                self.train(rows, _STEPS_OF_START)
                found.append((self.density(judged), conditionals.values()))
        if found:
            conditionals.assign(max(found, key=lambda each: each[0])[1])
        return bool(found)

    def _choose(self, rows: Rows, judged: Rows, levels: tuple[int, ...]) -> None:
        """Train each kernel from the best start, and choose the kernel under which the rows
        ``judged`` have the highest density."""
        first, densities = self.conditionals, dict[str, float]()
        kernel, noise = first.local_kernel, float(noise_variance_of(first.likelihood))
        lengthscales, total = kernel.lengthscales.numpy(), float(kernel.variance.numpy()) + noise
        for name, conditionals in self._trained.items():
            self._name = name
            assign(conditionals, noise / total, lengthscales, total)
            with contextlib.suppress(NonFiniteError):
                self.train(rows, _STEPS)
                densities[name] = self.density(judged)
        if not densities:
            raise NumericalBreakdown("no local kernel has a finite density of rows")
        self._name = max(densities, key=densities.__getitem__)
        self.compared = LocalKernels(densities, self._name, levels)

    def restart(self, samples: Samples) -> bool:
        """Train from all starts again, on rows given the nearest of all rows, and use the result if
        its density is clearly higher. Thinned rows hide variation over short distances.

        :return: Whether training has restarted.
        """
        model, conditionals = self._model, self.conditionals
        rows, judged = (samples.draw(_JUDGED, self._seed + k) for k in (0, 1))
        few = samples.draw(3 * _ROWS_OF_START, self._seed)
        present = self.density(judged), conditionals.values()
        points = model.local.points(model.ordered.merged.X)
        from_rows, density = starts(points, model.num_neighbours), -np.inf
        if self._try(from_rows, self._total(samples), few, judged):
            with contextlib.suppress(NonFiniteError):
                self.train(rows, _STEPS)
                density = self.density(judged)
        if density > present[0] + _CLEARLY:
            self.give()
            self.search()
            return True
        conditionals.assign(present[1])
        return False

    def train(self, rows: Rows, steps: int) -> None:
        """Make steps of L-BFGS on the densities of rows."""
        method = LBFGS(self.conditionals, rows, {})
        train(self.conditionals, method, Plan(time.perf_counter(), steps))

    def density(self, rows: Rows) -> float:
        """The mean log density of rows, in units of Y."""
        tensors = tuple(map(tf.constant, rows))
        return float(self.conditionals.maximum_log_likelihood_objective(tensors))

    def raise_noise(self, rows: Rows, mean_square: float) -> None:
        """Raise the noise to the level of highest density of ``rows``, if this level exceeds the
        trained noise."""
        now = float(noise_variance_of(self.conditionals.likelihood))
        most = max(mean_square, now)
        levels = now * _FACTOR ** np.arange(max(1, np.ceil(np.log(most / now) / np.log(_FACTOR))))
        densities = list[float]()
        for level in levels:
            self.conditionals.assign_noise(level)
            densities.append(self.density(rows))
            if len(densities) > 2 and densities[-1] < densities[-2] < densities[-3]:
                break  # above the best level, densities keep falling
        self.conditionals.assign_noise(levels[np.argmax(densities)])

    def widen(self, rows: Rows, steps: int) -> None:
        """Train the variances and the noise alone, which determine the width of intervals."""
        with frozen([self.conditionals.local_kernel.lengthscales]):
            if self.conditionals.trainable_variables:
                self.train(rows, steps)

    def scale(self, batches: Iterable[Rows]) -> None:
        """Multiply variance and noise by the factor under which the rows have the highest density:
        the mean square of their normal scores. If variance or noise is fixed, both stay."""
        conditionals = self.conditionals
        noise, variance = conditionals.noise_parameter, conditionals.local_kernel.variance
        if not (noise.trainable and variance.trainable):
            return
        factor = float(np.mean([conditionals.mean_square_score(rows) for rows in batches]))
        if not 0 < factor < np.inf:  # all residuals are zero
            return
        conditionals.assign_noise(factor * float(noise_variance_of(conditionals.likelihood)))
        variance.assign(factor * variance.numpy())
