"""Training by L-BFGS on all of the data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import scipy.optimize
import tensorflow as tf
from scipy.optimize import OptimizeResult

from .._arguments import Array
from .._tracing import compiled, is_operation_by_operation
from ..core.descriptions import checksum_of_rows
from ..core.kept import build_once
from . import losses
from .batches import Batch
from .losses import NumericalBreakdown
from .results import Ending, FitResult
from .run import Plan, Run, train

# SciPy's maxls allows 20 evaluations per line search, so this limit never ends a run.
_EVALUATIONS_PER_ITERATION = 25

_LARGE = 10.0


class LBFGS:
    """SciPy's L-BFGS-B over all trainable variables of a model.

    A parameter such as a lengthscale of 500 is almost its own unconstrained variable, and must move
    by hundreds. Such variables are therefore divided by their start (:func:`_units`).

    A line search may reach a point without a finite loss, for instance because a factorisation
    fails. The point is rejected by a loss that is larger than the loss of the iterate.

    :param batch: all of the data, or () if the model holds them.
    :param options: the options of SciPy's L-BFGS-B.
    :param from_zero: whether SciPy gets the loss minus the loss of the first point. Its ``ftol`` is
        a share of the loss, which has no meaning for a loss that is known up to a constant.
    """

    exact = converges = True

    def __init__(
        self, model: Any, batch: Batch, options: Mapping[str, Any], *, from_zero: bool = False
    ) -> None:
        self.variables = tuple(model.trainable_variables)
        self.stored = {"model": model}
        self._model, self._batch, self._options = model, batch, dict(options)
        self._evaluate = _evaluation(model, batch, self.variables)
        self._loss: float | None = None  # at the iterate; None before it is evaluated
        self._breakdown: NumericalBreakdown | None = None  # at the last point, if there was one
        self._rejected = 0
        self._from_zero, self._zero = from_zero, 0.0

    @property
    def described(self) -> dict[str, Any]:
        """The settings that must be equal for a resumed fit."""
        rows = {"rows": checksum_of_rows(self._batch)} if self._batch else {}
        return {"method": "l-bfgs", "options": self._options, **rows}

    def train(self, run: Run) -> Ending:
        """Run the remaining iterations.

        :raises NumericalBreakdown: if the loss or a gradient is not finite at the first point, or
            if no better point was found without a NaN.
        """
        losses.draw_for_step(self._model, 0)  # the same draws at all steps
        most = run.plan.steps - run.step
        ending: Ending | None = None

        def after_iteration(intermediate_result: OptimizeResult) -> None:
            """Record an iteration. SciPy passes a result because the argument has this name."""
            nonlocal ending
            # The variables hold the last evaluated point, which need not be the iterate.
            _assign(self.variables, tf.convert_to_tensor(intermediate_result.x * units))
            self._loss = float(intermediate_result.fun) + self._zero
            run.keep(run.step + 1)
            ending = run.after_step(-self._loss)
            if ending is not None and ending.reason != "steps":  # SciPy counts steps itself
                raise StopIteration

        options = {"maxfun": _EVALUATIONS_PER_ITERATION * most, **self._options, "maxiter": most}
        start = gpflow.optimizers.Scipy.initial_parameters(self.variables).numpy()
        units = _units(self._model, self.variables)
        how: dict[str, Any] = {"method": "L-BFGS-B", "jac": True, "options": options}
        try:
            result = scipy.optimize.minimize(
                self._value_and_slope, start / units, units, callback=after_iteration, **how
            )
        finally:
            run.restore()  # instead of the last point of a line search
        if ending is not None and ending.reason != "steps":
            return ending
        if not result.success and self._breakdown is not None:
            raise self._breakdown
        message = str(result.message)
        if self._rejected:
            message += f" ({self._rejected} points of line searches were rejected: no finite loss)"
        if result.success:
            return Ending("converged", message)
        return Ending("stalled" if ending is None else "steps", message)

    def objective(self, step: int) -> float:
        """The objective at the present parameters."""
        if self._loss is not None:  # at the start, which is as good as any point near it
            return -self._loss
        return -float(losses.training_loss_of(self._model)(*self._batch))

    def _value_and_slope(self, x: Array, units: Array) -> tuple[float, Array]:
        self._breakdown = None
        try:
            with losses.tensorflow_errors_as_breakdowns():
                at = tf.convert_to_tensor(x * units, tf.float64)
                value, slope = self._evaluate(at, *self._batch)
                loss, gradient = float(value), np.asarray(slope, np.float64) * units
            losses.require(np.isfinite(loss), f"the loss is {loss}")
            losses.require(np.all(np.isfinite(gradient)), "a gradient is not finite")
        except NumericalBreakdown as breakdown:
            if self._loss is None:
                raise
            self._breakdown = breakdown
            self._rejected += 1
            # Exceed the loss of the iterate by about its size. Far more would make the step
            # needlessly small; with less, the line search might accept the point.
            now = self._loss - self._zero
            return now + abs(now) + 1, np.zeros_like(x)
        if self._loss is None:
            self._loss, self._zero = loss, loss if self._from_zero else 0.0
        return loss - self._zero, gradient


def _units(model: Any, variables: tuple[tf.Variable, ...]) -> Array:
    """The step of each variable that changes its parameter by about the parameter's size. It is 1
    if this step is below :data:`_LARGE`, or if the transform changes the shape."""
    transforms = {
        id(parameter.unconstrained_variable): parameter.transform
        for parameter in getattr(model, "trainable_parameters", ())
    }
    units = []
    for variable in variables:
        transform, unit = transforms.get(id(variable)), tf.abs(variable)
        if transform is not None:
            with tf.GradientTape() as tape:
                value = transform(variable)
            change = tape.gradient(value, variable)
            is_elementwise = value.shape == variable.shape
            # A variable below zero belongs to a parameter near its bound.
            unit = (
                tf.minimum(variable, value / change) if is_elementwise else tf.ones_like(variable)
            )
        units.append(tf.where(unit > _LARGE, unit, tf.ones_like(unit)))
    return np.asarray(gpflow.optimizers.Scipy.pack_tensors(units), np.float64)


def _assign(variables: tuple[tf.Variable, ...], x: tf.Tensor) -> None:
    scipy = gpflow.optimizers.Scipy
    scipy.assign_tensors(variables, scipy.unpack_tensors(variables, x))


def _evaluation(model: Any, batch: Batch, variables: tuple[tf.Variable, ...]) -> Any:
    """The function of a vector of all variables, and of a batch, for the loss and its gradient."""
    loss = losses.training_loss_of(model)

    def evaluate(x: tf.Tensor, *rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        _assign(variables, x)
        value, gradients = losses.loss_and_gradients(loss, variables, rows)
        return value, gpflow.optimizers.Scipy.pack_tensors(gradients)

    if is_operation_by_operation():
        return evaluate
    specs = tuple(tf.TensorSpec([None, *rows.shape[1:]], rows.dtype) for rows in batch)
    flat = tf.TensorSpec([sum(v.shape.num_elements() for v in variables)], tf.float64)
    signature = flat, *specs
    return build_once(model, "l-bfgs", specs, lambda: compiled(evaluate, input_signature=signature))


def fit_by_lbfgs(
    model: Any, *, steps: int, progress: bool = False, enough: float | None = None
) -> FitResult:
    """Fit a model that holds its data, without checks of data and without warnings about features
    or the kernel, which may soon be replaced.

    :param enough: the gain in nats below which a step is the last; by default a share of the loss.
    """
    plan = Plan(time.perf_counter(), steps, progress=progress)
    options = {} if enough is None else {"ftol": enough}
    return train(model, LBFGS(model, (), options, from_zero=enough is not None), plan)
