"""Training by L-BFGS on all of the data, in blocks of iterations between checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.optimize import OptimizeResult

from .._tracing import Traced, is_operation_by_operation
from .batches import Batch
from .checkpoints import Checkpoints
from .compiled import CompiledFunctions, connected, names_of_variables, training_loss_of
from .endings import Ending, Endings
from .guard import LastGood, NumericalBreakdown, tensorflow_errors_as_breakdowns
from .progress import Recorder

# At most 20 evaluations per line search (scipy's maxls): never the limit that ends a run.
_EVALUATIONS_PER_ITERATION = 25


class _Ended(Exception):
    """Raised in SciPy's callback to end a fit before SciPy would end it."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


def run_lbfgs(
    model: Any,
    batch: Batch,
    variables: Sequence[tf.Variable],
    *,
    options: Mapping[str, Any],
    first_step: int,
    steps: int,
    checkpoint_every: int | None,
    store: Checkpoints,
    ended: tf.Variable,
    recorder: Recorder,
    endings: Endings,
    jit_compile: bool,
) -> tuple[int, Ending]:
    """
    Run at most the iterations ``first_step + 1, ..., steps``.

    SciPy keeps what L-BFGS has learned of the curvature, and no checkpoint can hold it. It is
    therefore dropped at every multiple of ``checkpoint_every``, whether or not the fit is
    interrupted there, so that a resumed fit takes the same steps as an uninterrupted one.

    :param batch: all of the data, or () if the model holds them.
    :returns: the last iteration, and why it was the last.
    :raises NonFiniteError: if the loss or a gradient is not finite at the first point of a block,
        or at all points that a line search tries.
    """
    evaluate = _evaluation(model, batch, variables, jit_compile)
    good = LastGood(variables, first_step, store.latest)
    run = _Iterations(evaluate, batch, variables, good, first_step, recorder, endings)
    while True:
        size = steps - run.step
        if checkpoint_every is not None:
            size = min(checkpoint_every - run.step % checkpoint_every, size)
        ending, message = run.block(size, options)
        if ending is not None and ending.reason in ("converged", "stalled"):
            ended.assign(ending.reason)
        store.save(run.step)
        good.checkpoint = store.latest
        if ending is None and run.step == steps:
            ending = Ending("steps", message)
        if ending is not None:
            recorder.evaluate(run.step, last=True)
            return run.step, ending


class _Iterations:
    """
    The iterations of one fit, block by block.

    :param evaluate: a function of all variables as one vector, and a batch, that returns the loss
        and its gradient.
    :param good: the parameters to go back to; those after each iteration are kept in it.
    :ivar step: the last iteration that is done.
    """

    def __init__(
        self,
        evaluate: Callable[..., tuple[tf.Tensor, tf.Tensor]],
        batch: Batch,
        variables: Sequence[tf.Variable],
        good: LastGood,
        first_step: int,
        recorder: Recorder,
        endings: Endings,
    ) -> None:
        self._evaluate, self._variables, self._good = evaluate, variables, good
        self._scipy = _ExtendedValueScipy(lambda x: evaluate(x, *batch))
        self._recorder, self._endings = recorder, endings
        self.step = first_step

    def block(self, size: int, options: Mapping[str, Any]) -> tuple[Ending | None, str]:
        """
        At most ``size`` iterations, from a start without memory of the curvature.

        :returns: why the fit ends, None if it can go on; and what SciPy said.
        :raises NonFiniteError: as :func:`run_lbfgs`.
        """
        scipy, good = self._scipy, self._good
        scipy.reference = None
        try:
            with good.restored_on_breakdown():
                result = scipy.minimize(
                    self._evaluate,
                    self._variables,
                    callback=self._after_iteration,
                    options={
                        "maxfun": _EVALUATIONS_PER_ITERATION * size,
                        **options,
                        "maxiter": size,
                    },
                )
                if not result.success and scipy.breakdown is not None:
                    raise scipy.breakdown
        except _Ended as ended:
            good.keep(good.present_values(), self.step)
            return ended.ending, ended.ending.message
        except BaseException:
            good.restore()  # not the trial point of a line search that was interrupted
            raise
        good.keep(good.present_values(), self.step)
        message = str(result.message) + scipy.remark()
        return _ending_of(result, size, message), message

    def _after_iteration(self, intermediate_result: OptimizeResult) -> None:
        """SciPy's callback, which SciPy calls in this way because of its argument's name."""
        # The variables hold the point evaluated last, which is x but for roundings and surprises.
        self.step += 1
        scipy, variables, good = self._scipy, self._variables, self._good
        values = scipy.unpack_tensors(variables, tf.convert_to_tensor(intermediate_result.x))
        scipy.assign_tensors(variables, values)
        good.keep(good.present_values(), self.step)
        scipy.reference = float(intermediate_result.fun)
        self._recorder.step(-float(intermediate_result.fun))
        ending = self._endings.after_step(self.step)
        if ending is None:
            self._recorder.evaluate(self.step)
            ending = self._endings.after_callbacks(self.step)
        if ending is not None and ending.reason != "steps":  # SciPy counts these itself
            raise _Ended(ending)


def _ending_of(result: OptimizeResult, iterations: int, message: str) -> Ending | None:
    """Why SciPy ended; None if it did all iterations that it was asked for."""
    if result.success:
        return Ending("converged", message)
    return Ending("stalled", message) if result.nit < iterations else None


def _evaluation(
    model: Any, batch: Batch, variables: Sequence[tf.Variable], jit_compile: bool
) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
    """The function of all variables as one vector, and a batch, that returns the loss and its
    gradient."""
    scipy = gpflow.optimizers.Scipy
    variables, names = tuple(variables), names_of_variables(model)

    def build(loss: Callable[..., tf.Tensor]) -> Callable[..., tuple[tf.Tensor, tf.Tensor]]:
        def evaluate(x: tf.Tensor, *rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            scipy.assign_tensors(variables, scipy.unpack_tensors(variables, x))
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(variables)
                value = loss(*rows)
            gradients = connected(tape.gradient(value, variables), variables, names)
            return value, scipy.pack_tensors(gradients)

        return evaluate

    if is_operation_by_operation():
        return build(training_loss_of(model))
    references = tuple(v.ref() for v in variables)
    specs = tuple(tf.TensorSpec([None, *rows.shape[1:]], rows.dtype) for rows in batch)
    flat = tf.TensorSpec([sum(v.shape.num_elements() for v in variables)], tf.float64)
    options: dict[str, Any] = {"jit_compile": True} if jit_compile else {}
    options["input_signature"] = (flat, *specs)
    key = ("l-bfgs", references, specs, jit_compile)
    functions = CompiledFunctions.of(model)
    return functions.get(key, lambda: Traced(build, training_loss_of(model), **options))


class _ExtendedValueScipy(gpflow.optimizers.Scipy):
    """
    GPflow's Scipy, for a loss that is not defined everywhere.

    A line search may try a point where a factorisation fails. Such a point is rejected like any
    other that is worse than the iterate: it is given a larger loss, and the search comes nearer.

    :ivar reference: the loss at the present iterate; None before it is evaluated.
    :ivar breakdown: what was wrong with the last point evaluated; None if nothing was.
    """

    def __init__(self, evaluate: Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]) -> None:
        super().__init__()
        self._evaluate = evaluate
        self.reference: float | None = None
        self.breakdown: NumericalBreakdown | None = None
        self._rejected = 0

    def remark(self) -> str:
        """A remark on the number of rejected points; empty if there were none."""
        if not self._rejected:
            return ""
        return f" ({self._rejected} points of line searches had no finite loss and were rejected)"

    def eval_func(
        self, *args: Any, **kwargs: Any
    ) -> Callable[[AnyNDArray], tuple[AnyNDArray, AnyNDArray]]:
        def checked(x: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
            self.breakdown = None
            try:
                with tensorflow_errors_as_breakdowns():
                    value, slope = self._evaluate(tf.convert_to_tensor(x, tf.float64))
                    loss, gradient = (t.numpy().astype(np.float64) for t in (value, slope))
                if not np.isfinite(loss):
                    raise NumericalBreakdown(f"the loss is {loss}")
                if not np.all(np.isfinite(gradient)):
                    raise NumericalBreakdown("a gradient is not finite")
            except NumericalBreakdown as breakdown:
                if self.reference is None:
                    raise
                self.breakdown = breakdown
                self._rejected += 1
                # Above the iterate by about its own size: far more would make the step needlessly
                # small, less might not be worse than what the line search accepts.
                worse = self.reference + abs(self.reference) + 1
                return np.asarray(worse), np.zeros_like(x)
            if self.reference is None:
                self.reference = float(loss)
            return loss, gradient

        return checked
