"""One run of the steps of a method: checkpoints, callbacks, progress, and its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from .._progress import progress_bar
from ..core.descriptions import checksum_of_rows, describe
from .checkpoints import FORMAT, Checkpoints
from .losses import NumericalBreakdown
from .replicas import Replicas
from .results import Callback, Ending, FitResult, NonFiniteError, StopFit

HAD_ENDED = "the checkpoint is of a fit that had ended"  # the message if nothing was trained

_UNTIL_CONVERGED = "{desc}: {n_fmt} steps, at most {total_fmt} [{elapsed}, {rate_fmt}{postfix}]"
"""The bar of a method that ends when it has converged: the remaining time is not known."""

_SMOOTHING = 0.95  # of the running ELBO: an average over about the last 20 minibatches


@dataclass(frozen=True)
class Plan:
    """The arguments and options of ``fit`` that do not depend on the method.

    :ivar started: the time of ``time.perf_counter`` at which the fit began.
    :ivar subset_size: the number of rows of a random subset to begin with; None for no subset.
    """

    started: float
    steps: int
    progress: bool = False
    callbacks: Sequence[Callback] = ()
    every: int = 100
    max_seconds: float | None = None
    checkpoint_dir: str | os.PathLike[str] | None = None
    seed: int = 0
    num_inducing: int | None = None
    subset_size: int | None = None
    subset_steps: int = 0


class Run:
    """The steps ``step + 1, ..., plan.steps`` of a fit.

    :param method: the method of :func:`train`. The last good values of its variables are stored.
        Its ``converges`` says whether it may end before the last step.
    :ivar step: the last step that is done.
    :ivar kept_step: the step that led to the stored values.
    """

    def __init__(
        self, model: Any, plan: Plan, method: Any, checkpoints: Checkpoints, replicas: Replicas
    ) -> None:
        self.plan, self.step = plan, checkpoints.step
        self.elbos: list[float] = []
        self.metrics: list[Mapping[str, float]] = []
        self._model, self._variables, self._exact = model, method.variables, method.exact
        self._checkpoints, self._replicas = checkpoints, replicas
        self._average, self._called_at = 0.0, -1
        self.keep(self.step)
        shown = plan.progress and replicas.is_chief
        how = {"initial": self.step, "bar_format": _UNTIL_CONVERGED if method.converges else None}
        self._bar = progress_bar("fit", "step", plan.steps, shown=shown, **how)

    def close(self) -> None:
        """Close the progress bar, which stays visible."""
        self._show()
        self._bar.close()

    @property
    def running_elbo(self) -> float:
        """The exponential moving average of the ELBOs, without the bias of its start at zero."""
        if not self.elbos:
            return float("nan")
        bias = 1 - _SMOOTHING ** len(self.elbos)
        return self.elbos[-1] if self._exact else self._average / bias

    def values(self) -> list[tf.Tensor]:
        """The present values; TensorFlow copies a buffer only when an update writes into it."""
        return [variable.read_value() for variable in self._variables]

    def keep(self, step: int, values: Sequence[tf.Tensor] | None = None) -> None:
        """Store values (by default the present values) as the good values after this step."""
        self.kept_step, self._kept_values = step, self.values() if values is None else values

    def restore(self) -> None:
        """Set the variables to the stored values."""
        for variable, value in zip(self._variables, self._kept_values, strict=True):
            variable.assign(value)

    def after_step(self, elbo: float, check: Callable[[], None] = lambda: None) -> Ending | None:
        """Record a step. At multiples of ``every``, and after the last step, write a checkpoint and
        call the callbacks.

        :param check: raises an error if the present parameters must not be stored.
        :returns: the ending, if this was the last step; otherwise None.
        """
        self.step += 1
        self.elbos.append(elbo)
        self._average = _SMOOTHING * self._average + (1 - _SMOOTHING) * elbo
        self._show()
        self._bar.update(1)
        seconds = f"max_seconds={self.plan.max_seconds} were over after step {self.step}"
        ending, out_of_time = None, Ending("max_seconds", seconds)
        if self.step >= self.plan.steps:
            ending = Ending("steps", f"all {self.plan.steps} steps done")
        elif self._replicas.alone and self._is_late():
            ending = out_of_time
        if ending is None and self.step % self.plan.every:
            return None
        if self.plan.checkpoint_dir is not None:
            check()
            self._checkpoints.save(self.step)
        wish = self.evaluate()
        # All workers must end at the same step, although their clocks and the results of their
        # callbacks differ: the first worker that ends decides for all.
        by_callback, late = self._replicas.mean([wish is not None, self._is_late()])
        if ending is None and by_callback:
            why = wish or "of another worker"
            return Ending("callback", f"a callback ended the fit after step {self.step}: {why}")
        return out_of_time if ending is None and late else ending

    def _is_late(self) -> bool:
        limit = self.plan.max_seconds
        return limit is not None and time.perf_counter() - self.plan.started >= limit

    def evaluate(self) -> str | None:
        """Call the callbacks, unless they have been called after this step.

        :returns: the reason of a callback that ends the fit; otherwise None.
        """
        if not self.plan.callbacks or self._called_at == self.step:
            return None
        self._called_at, wish = self.step, None
        metrics: dict[str, float] = {"step": self.step}
        for callback in self.plan.callbacks:
            try:
                returned = callback(self.step, self._model)
            except StopFit as stop:
                wish, returned = str(stop), stop.metrics
            metrics |= {name: float(np.asarray(x)) for name, x in (returned or {}).items()}
        self.metrics.append(metrics)
        self._show()
        return wish

    def _show(self) -> None:
        shown = {"elbo": self.running_elbo} if self.elbos else {}
        if self.metrics:
            shown |= {name: value for name, value in self.metrics[-1].items() if name != "step"}
        text = ", ".join(f"{name}={value:.6g}" for name, value in shown.items())
        self._bar.set_postfix_str(text, refresh=False)


def train(
    model: Any,
    method: Any,
    plan: Plan,
    replicas: Replicas | None = None,
    *,
    may_be_done: bool = False,
) -> FitResult:
    """Run the steps of a method, from the beginning or from a checkpoint.

    :param method: a :class:`.LBFGS`, :class:`.GradientSteps`, :class:`.Passes` or :class:`.Turns`.
        Its ``variables`` change; ``exact`` is whether its ELBOs are exact. A checkpoint holds
        ``stored``, and ``described`` must be equal for a resumed fit. ``train(run)`` runs the
        steps. ``objective(step)`` is the objective at the present parameters, for a fit without
        steps.
    :param may_be_done: whether a method without variables is no error.
    """
    if not (method.variables or may_be_done):
        raise ValueError(
            f"model: this {type(model).__name__} has no trainable variables; call "
            "gpflow.set_trainable(parameter, True) on those to train."
        )
    replicas = replicas or Replicas(None)
    ended = tf.Variable("", trainable=False)  # the reason why a method has ended
    checkpoints = Checkpoints(
        plan.checkpoint_dir,
        fit="" if plan.checkpoint_dir is None else _described(model, method.described),
        writes=replicas.is_chief,
        ended=ended,
        **method.stored,
    )
    replicas.start(checkpoints)
    run = Run(model, plan, method, checkpoints, replicas)
    first_step = run.step
    reason: Any = ended.numpy().decode() or "steps"
    ending = Ending(reason, HAD_ENDED)
    try:
        if not method.variables:
            ending = Ending("converged", "no parameter is left to train")
        elif reason == "steps" and first_step < plan.steps:
            ending = method.train(run)
            if ending.reason in ("converged", "stalled"):
                ended.assign(ending.reason)
                checkpoints.save(run.step)
        run.evaluate()
    except NumericalBreakdown as error:
        run.restore()
        where = run.step + 1, run.kept_step, checkpoints.latest
        raise NonFiniteError(str(error), *where) from error
    finally:
        run.close()
    replicas.mean([0.0])  # all wait until the chief has written its checkpoint
    return FitResult(
        steps=run.step,
        first_step=first_step,
        elbos=np.array(run.elbos, np.float64),
        elbo=run.running_elbo if run.elbos else method.objective(run.step),
        metrics=tuple(run.metrics),
        seconds=time.perf_counter() - plan.started,
        reason=ending.reason,
        message=ending.message,
        checkpoint=checkpoints.latest,
    )


def _described(model: Any, settings: Mapping[str, Any]) -> str:
    """The description that identifies a fit, one ``name: value`` a line."""
    lines: dict[str, Any] = {FORMAT: 2, "model": type(model).__name__}
    for path, parameter in gpflow.utilities.parameter_dict(model).items():
        lines[path.removeprefix(".")] = _parameter(parameter)
    describe("", model, lines, set(), parts_only=True)
    lines |= settings
    if hasattr(model, "described_rows"):
        lines |= model.described_rows()
    elif isinstance(model, InternalDataTrainingLossMixin):
        lines["rows"] = checksum_of_rows(tf.nest.flatten(getattr(model, "data", ())))
    return "\n".join(f"{name}: {str(value)}".replace("\n", " ") for name, value in lines.items())


def _parameter(parameter: gpflow.Parameter | tf.Variable) -> str:
    """The description of a parameter, without its value."""
    words = [f"{parameter.dtype.name} {list(parameter.shape)}"]
    if isinstance(parameter, gpflow.Parameter):
        words.append(getattr(parameter.transform, "name", "identity"))
        if parameter.prior is not None:
            numbers = {
                name: np.asarray(value).tolist()
                for name, value in parameter.prior.parameters.items()
                if isinstance(value, (float, np.ndarray, np.generic, tf.Tensor))
            }
            words.append(f"prior {type(parameter.prior).__name__} {numbers}")
    if not parameter.trainable:
        words.append("not trainable")
    return ", ".join(words)
