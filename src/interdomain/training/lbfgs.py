"""L-BFGS on the full batch, in blocks that a checkpoint can separate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray
from scipy.optimize import OptimizeResult

from .checkpoints import CheckpointStore
from .guard import LastGood, NumericalBreakdown, tensorflow_errors_as_breakdowns
from .progress import Recorder

# At most 20 evaluations per line search (scipy's maxls): never the limit that ends a run.
_EVALUATIONS_PER_ITERATION = 25


@dataclass(frozen=True)
class LBFGSOutcome:
    """Where L-BFGS ended (``step``), whether it met a tolerance, and its last words."""

    step: int
    converged: bool
    message: str


def run_lbfgs(
    loss: Callable[[], tf.Tensor],
    variables: Sequence[tf.Variable],
    *,
    options: Mapping[str, Any],
    first_step: int,
    steps: int,
    checkpoint_every: int | None,
    store: CheckpointStore,
    recorder: Recorder,
    jit_compile: bool,
) -> LBFGSOutcome:
    """
    Iterations ``first_step + 1, ..., steps`` at most.

    The curvature L-BFGS has gathered lives inside SciPy and cannot be stored. With
    ``checkpoint_every`` it is dropped at every multiple of it, whether or not the fit is
    interrupted there, so that a resumed fit goes the way of an uninterrupted one.

    :param loss: of no arguments: the loss on all of the data.
    :raises NonFiniteError: see there; at the first point of a block, or when a line search ends
        because no point it tried had finite numbers.
    """
    scipy = _ExtendedValueScipy()
    good = LastGood(variables, first_step, store.latest)
    step = first_step

    def after_iteration(intermediate_result: OptimizeResult) -> None:
        # The variables hold the point evaluated last, which is x but for roundings and surprises.
        nonlocal step
        step += 1
        values = scipy.unpack_tensors(variables, tf.convert_to_tensor(intermediate_result.x))
        scipy.assign_tensors(variables, values)
        good.keep(good.present_values(), step)
        scipy.reference = float(intermediate_result.fun)
        recorder.step(-float(intermediate_result.fun))
        recorder.evaluate(step)

    def next_block() -> int:
        if checkpoint_every is None:
            return steps - step
        return min(checkpoint_every - step % checkpoint_every, steps - step)

    while True:
        iterations = next_block()
        scipy.reference = None
        try:
            with good.restored_on_breakdown():
                result = scipy.minimize(
                    loss,
                    variables,
                    callback=after_iteration,
                    options={
                        "maxfun": _EVALUATIONS_PER_ITERATION * iterations,
                        **options,
                        "maxiter": iterations,
                    },
                    tf_fun_args={"jit_compile": True} if jit_compile else {},
                )
                if not result.success and scipy.breakdown is not None:
                    raise scipy.breakdown
        except BaseException:
            good.restore()  # not the trial point of a line search that was interrupted
            raise
        good.keep(good.present_values(), step)
        converged = bool(result.success)
        stopped = not converged and result.nit < iterations
        store.save(step, converged=converged, stopped=stopped)
        good.checkpoint = store.latest
        if converged or stopped or step == steps:
            recorder.evaluate(step, last=True)
            return LBFGSOutcome(step, converged, str(result.message) + scipy.remark())


class _ExtendedValueScipy(gpflow.optimizers.Scipy):
    """
    GPflow's Scipy, for a loss that is not defined everywhere.

    A line search may try a point where a factorisation fails. Such a point is rejected like any
    other that is worse than the iterate: it is given a larger loss, and the search comes nearer.

    :ivar reference: the loss at the present iterate; None before it is evaluated.
    :ivar breakdown: what was wrong with the last point evaluated, if anything.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reference: float | None = None
        self.breakdown: NumericalBreakdown | None = None
        self._rejected = 0

    def remark(self) -> str:
        """In words, how many points were rejected; empty for none."""
        if not self._rejected:
            return ""
        return f" ({self._rejected} points of line searches had no finite loss and were rejected)"

    def eval_func(
        self, *args: Any, **kwargs: Any
    ) -> Callable[[AnyNDArray], tuple[AnyNDArray, AnyNDArray]]:
        evaluate = super().eval_func(*args, **kwargs)

        def checked(x: AnyNDArray) -> tuple[AnyNDArray, AnyNDArray]:
            self.breakdown = None
            try:
                with tensorflow_errors_as_breakdowns():
                    loss, gradient = evaluate(x)
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
