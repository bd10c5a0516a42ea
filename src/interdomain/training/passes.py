"""The passes of :func:`fit_collapsed`, and the step after each."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Literal, NamedTuple, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf

from ..models import CollapsedSVGP
from ..models.collapsed_svgp import PassResult
from ..models.site_evidence import TiltedEvidence
from ..models.sites import Sites
from ..sphere._typing import Array
from .collapsed_checkpoints import PassCheckpoint, arrays_of_sites, sites_of_arrays
from .loop import fit_quietly
from .results import NonFiniteError
from .trust_region import limited
from .validation import failing_likelihood

CollapsedReason: TypeAlias = Literal["converged", "passes", "max_seconds", "stalled"]

_LEAST_SHARE = 2.0**-6
"""Of the way to the tangent sites: steps that are shorter than this end the fit."""

_WEIGHTS = (1.0, 0.5, 0.25, 0.125, 0.0)
"""Of negative precisions, tried in turn near the optimum. Far from it they are left out, which is
safer, and as good."""

_BEGINNING = 0.01
"""Of the prior's variance that q has in the first pass."""

_SETTLED = 0.1
"""Of the bound: while it rises by more, sites say nothing of the parameters, which stay."""

_NEAR = 1e-3
"""Of the bound: where it rises by less, the optimum is near."""

_GROWTH = 1.4
"""Of the size of steps that were too long, when the bound rises."""

_LEAST_PRECISIONS = (0.3, 0.03, 1e-6)
"""Of q, where the prior's is one: sites of negative precision may not leave less than this. The
next is allowed where the optimum has less than the one before."""

_NO_TRAINING = 2.0**-5
"""Parameters are left as they are in steps that have been shortened so far."""

_ROWS = 1_000
"""That are drawn to find the cause of numbers that are not finite."""

_ROUNDING = 1e-10
"""Of the bound: it may fall by so much."""

_LONGEST_STEP = 1.0
"""Of a likelihood's unconstrained numbers, between two passes."""

_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW = 0.01, 1e-6
"""Nats of the bound."""

_PROGRESS = (
    *("_settled", "_trained", "_near", "_whole", "_halved"),
    *("_share", "_weight", "_first_weight", "_least_precision"),
)
"""Attributes of :class:`Passes`: how far they have come."""


@contextmanager
def frozen(parameters: Iterable[gpflow.Parameter | tf.Variable]) -> Iterator[None]:
    """Within this context, the parameters are marked not trainable."""
    parameters = [parameter for parameter in parameters if parameter.trainable]
    for parameter in parameters:
        gpflow.set_trainable(parameter, False)
    try:
        yield
    finally:
        for parameter in parameters:
            gpflow.set_trainable(parameter, True)


class _Point(NamedTuple):
    """Where a pass was made, and what it found.

    :ivar objective: The bound, and the log density of priors of parameters.
    """

    sites: Sites
    values: list[Array]
    result: PassResult
    objective: float


class Passes:
    """Alternates passes over the data with steps of q and the parameters."""

    def __init__(
        self,
        model: CollapsedSVGP,
        *,
        steps: int,
        tolerance: float | None,
        arguments: dict[str, Any],
        checkpoint: PassCheckpoint | None = None,
    ) -> None:
        self._model, self._steps, self._tolerance = model, steps, tolerance
        self._arguments, self._checkpoint = arguments, checkpoint
        self._parameters_of_likelihood = model.likelihood.trainable_parameters
        own = {id(p) for p in self._parameters_of_likelihood}
        others = [p for p in model.trainable_parameters if id(p) not in own]
        self._of_likelihood = [p.unconstrained_variable for p in self._parameters_of_likelihood]
        self._variables = [*self._of_likelihood, *(p.unconstrained_variable for p in others)]
        self._best: _Point | None = None
        self._tilted: TiltedEvidence | None = None
        self._settled, self._trained = False, steps == 0
        self._weight, self._first_weight = 0.0, 0
        self._share, self._halved = 1.0, False
        self._whole, self._near, self._least_precision = True, False, _LEAST_PRECISIONS[0]
        self.elbos: list[float] = []
        self.seconds = 0.0

    @property
    def best(self) -> _Point:
        """The best point so far; the model is there when the passes end."""
        assert self._best is not None
        return self._best

    def run(
        self,
        state: Mapping[str, Array] | None,
        max_passes: int,
        max_seconds: float | None,
        started: float,
        bar: Any = None,
    ) -> tuple[CollapsedReason, str]:
        """Run the passes; return why they ended, as a reason and in words.

        :param state: what :meth:`_state` returned, to continue from; the model must already have
            the parameters and sites that belong to it.
        """
        if state is not None:
            self._restore(state)
            if bar is not None:
                bar.update(len(self.elbos))
        if not self._model.has_sites:
            self._model.narrow(_BEGINNING)
        while True:
            if self.elbos and max_seconds is not None:
                if time.perf_counter() - started > max_seconds:
                    self._go_back()
                    return "max_seconds", f"{max_seconds:g} seconds have passed"
            gain = self._pass()
            if bar is not None:
                bar.update()
                bar.set_postfix_str(f"bound {self.best.result.elbo:.6g}")
            if gain is not None and gain < self._enough() and self._share == 1.0:
                if self._whole and self._trained:
                    return "converged", f"the last step raised the bound by {gain:.2g}"
                if not self._whole:
                    self._allow_less()
            if len(self.elbos) >= max_passes:
                self._go_back()
                return "passes", f"{max_passes} passes were made"
            if self._share < _LEAST_SHARE:
                self._go_back()
                return "stalled", "no step raises the bound, however short it is"
            self._step()
            if self._checkpoint is not None:
                self._checkpoint.save(self._model, self._state())

    def _state(self) -> dict[str, Array]:
        """All that the next passes depend on, besides the model."""
        best, result = self.best, self.best.result
        negative = result.sites is not result.clipped
        return {
            "elbos": np.array(self.elbos),
            "progress": np.array([float(getattr(self, name)) for name in _PROGRESS]),
            "numbers": np.array([best.objective, result.elbo, result.mean_expectation, negative]),
            "slopes": result.slopes,
            "curvatures": result.curvatures,
            **{f"value_{k}": value for k, value in enumerate(best.values)},
            **arrays_of_sites("best", best.sites),
            **arrays_of_sites("found", result.sites),
            **(arrays_of_sites("clipped", result.clipped) if negative else {}),
        }

    def _restore(self, state: Mapping[str, Array]) -> None:
        self.elbos = state["elbos"].tolist()
        for name, value in zip(_PROGRESS, state["progress"], strict=True):
            setattr(self, name, type(getattr(self, name))(value))
        objective, elbo, mean_expectation, negative = state["numbers"].tolist()
        found = sites_of_arrays("found", state)
        clipped = sites_of_arrays("clipped", state) if negative else found
        slopes, curvatures = state["slopes"], state["curvatures"]
        result = PassResult(elbo, found, clipped, slopes, curvatures, mean_expectation)
        values = [state[f"value_{k}"] for k in range(len(self._variables))]
        self._best = _Point(sites_of_arrays("best", state), values, result, objective)

    def _pass(self) -> float | None:
        """A pass; returns by how much the bound has risen, None if it has not, and the model was
        taken back."""
        begun = time.perf_counter()
        result = self._model.pass_over_data()
        self.seconds += time.perf_counter() - begun
        before = -np.inf if self._best is None else self._best.objective
        objective = result.elbo + float(self._model.log_prior_density())
        if self._best is None and not np.isfinite(result.elbo):
            cause = None
            with suppress(ValueError):  # rows were taken away, and cannot be drawn
                cause = failing_likelihood(self._model, *self._model.draw(_ROWS))
            raise ValueError(
                cause
                or "model: features, moments of f or the expected log-likelihood of some finite "
                "rows are NaN or infinite to begin with; check the kernel's parameters, and the "
                "scales of X and Y."
            )
        self.elbos.append(result.elbo)
        slack = 0.0 if self._best is None else _ROUNDING * abs(before)
        if objective >= before - slack:
            gain = objective - before
            values = [variable.numpy() for variable in self._variables]
            self._best = _Point(self._model.sites, values, result, objective)
            if self._weight > 0:
                self._first_weight = max(0, self._first_weight - 1)
            self._settled = self._settled or gain < _SETTLED * abs(objective)
            self._near = self._near or gain < 1 + _NEAR * abs(before)
            if not self._halved:
                self._share = min(1.0, _GROWTH * self._share)
            self._halved = False
            return gain
        if self._weight > 0:
            self._first_weight = _WEIGHTS.index(self._weight) + 1
        else:
            self._share /= 2
            self._halved = True
        return None

    def _enough(self) -> float:
        """The gain of a pass below which there need not be another."""
        if self._tolerance is not None:
            return self._tolerance
        return max(_LEAST_TOLERANCE, _TOLERANCE_OF_A_ROW * self._model.num_data)

    def _allow_less(self) -> None:
        """The optimum with sites as they are is not among the q that were allowed."""
        lower = [value for value in _LEAST_PRECISIONS if value < self._least_precision]
        self._least_precision = max(lower, default=0.0)

    def _go_back(self) -> None:
        best = self.best
        for variable, value in zip(self._variables, best.values, strict=True):
            variable.assign(value)
        self._model.assign_sites(best.sites)

    def _step(self) -> None:
        """From the best point on."""
        self._go_back()
        best, result = self.best, self.best.result
        clipped = best.sites.mixed(result.clipped, self._share)
        signed = best.sites.mixed(result.sites, self._share)
        negative = result.sites is not result.clipped
        self._whole, self._weight = not negative, 0.0
        self._model.assign_sites(signed)
        tilted = negative and self._near and self._model.has_q()
        self._model.assign_sites(clipped)
        if self._settled and self._share > _NO_TRAINING and self._steps:
            self._newton(result)
            self._train((clipped, signed) if tilted else None)
            self._trained = True
        if not (negative and self._near):
            return
        for weight in _WEIGHTS[self._first_weight :]:
            self._model.assign_sites(clipped.mixed(signed, weight))
            if self._model.has_q(self._least_precision):
                break
        self._weight = weight
        self._whole = weight == 1.0

    def _train(self, tilted: tuple[Sites, Sites] | None) -> None:
        """The parameters of the kernel and the mean function."""
        if len(self._variables) == len(self._of_likelihood):
            return
        with frozen(self._model.likelihood.parameters), suppress(NonFiniteError):
            model: Any = self._model
            if tilted is not None:
                if self._tilted is None:
                    self._tilted = TiltedEvidence(self._model)
                model = self._tilted
                model.tilt(*tilted)
            with limited(self._model.trainable_parameters):
                fit_quietly(model, steps=self._steps, **self._arguments)

    def _newton(self, result: PassResult) -> None:
        """For the likelihood's numbers, with the curvature of a maximum and no step too long."""
        if not self._of_likelihood:
            return
        of_prior = self._slopes_of_prior()
        slopes, curvatures = result.slopes + of_prior[0], result.curvatures + of_prior[1]
        curvatures, directions = np.linalg.eigh((curvatures + curvatures.T) / 2)
        scale = np.maximum(np.abs(curvatures), 1e-12 + 1e-8 * np.max(np.abs(curvatures)))
        step = self._share * directions @ ((directions.T @ slopes) / scale)
        step *= min(1.0, _LONGEST_STEP / max(float(np.max(np.abs(step))), 1e-300))
        start = 0
        for variable in self._of_likelihood:
            size = int(tf.size(variable))
            part = step[start : start + size].reshape(variable.shape)
            variable.assign_add(tf.cast(part, variable.dtype))
            start += size

    def _slopes_of_prior(self) -> tuple[Array, Array]:
        """First and second derivatives of the log density of priors of the likelihood's numbers."""
        variables = self._of_likelihood
        zero = tf.UnconnectedGradients.ZERO

        def flat(gradients: Any) -> tf.Tensor:
            return tf.concat([tf.reshape(tf.convert_to_tensor(g), [-1]) for g in gradients], axis=0)

        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as tape:
                prior = tf.add_n([p.log_prior_density() for p in self._parameters_of_likelihood])
            slopes = flat(tape.gradient(prior, variables, unconnected_gradients=zero))
            numbers = tf.unstack(slopes)
        rows = [flat(outer.gradient(n, variables, unconnected_gradients=zero)) for n in numbers]
        return np.asarray(slopes, np.float64), np.asarray(rows, np.float64)
