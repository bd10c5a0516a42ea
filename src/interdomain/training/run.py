"""One run of the steps of a method: checkpoints, callbacks, progress, and when it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._progress import progress_bar
from ..regression.rows_model import RowsModel
from .batches import Batches
from .checkpoints import Checkpoints
from .data import failing_likelihood
from .losses import NumericalBreakdown
from .replicas import Replicas
from .results import Callback, Ending, FitResult, NonFiniteError, StopFit

_SMOOTHING = 0.95  # of the running ELBO: an average over about the last 20 minibatches


@dataclass
class Run:
    """The steps ``step + 1, ..., steps`` of a fit.

    :ivar variables: those that are trained; their last good values are kept.
    :ivar exact: whether each recorded ELBO is the exact one, and needs no averaging.
    :ivar started: when the fit began, by ``time.perf_counter``.
    :ivar step: the last step that is done.
    :ivar kept_step: the step that led to the values that are kept.
    """

    model: Any
    variables: Sequence[tf.Variable]
    checkpoints: Checkpoints
    replicas: Replicas
    started: float
    steps: int
    exact: bool
    progress: bool
    callbacks: Sequence[Callback] = ()
    every: int = 100
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        self.step = self.checkpoints.step
        self.elbos: list[float] = []
        self.metrics: list[Mapping[str, float]] = []
        self._average, self._called_at = 0.0, -1
        self.keep(self.step)
        shown = self.progress and self.replicas.is_chief
        self._bar = progress_bar("fit", "step", self.steps, shown=shown, initial=self.step)

    def close(self) -> None:
        """Leave the progress bar as it is."""
        self._show()
        self._bar.close()

    @property
    def running_elbo(self) -> float:
        """Exponential moving average of the ELBOs, free of the bias of its start at zero."""
        if not self.elbos:
            return float("nan")
        return self.elbos[-1] if self.exact else self._average / (1 - _SMOOTHING ** len(self.elbos))

    def values(self) -> list[tf.Tensor]:
        """The present values of the variables. TensorFlow copies a buffer only when an update would
        write into it."""
        return [variable.read_value() for variable in self.variables]

    def keep(self, step: int, values: Sequence[tf.Tensor] | None = None) -> None:
        """Remember values, by default the present ones, as good: those after this step."""
        self.kept_step, self._kept = step, self.values() if values is None else values

    def restore(self) -> None:
        """Give the variables the remembered values again."""
        for variable, value in zip(self.variables, self._kept, strict=True):
            variable.assign(value)

    def after_step(self, elbo: float, check: Callable[[], None] = lambda: None) -> Ending | None:
        """
        Record a step. At a multiple of ``every``, and at the end, write a checkpoint and call the
        callbacks.

        :param check: raises an error if the present parameters must not be kept.
        :returns: the ending, if this was the last step; otherwise None.
        """
        self.step += 1
        self.elbos.append(elbo)
        self._average = _SMOOTHING * self._average + (1 - _SMOOTHING) * elbo
        self._show()
        self._bar.update(1)
        ending = None
        if self.step >= self.steps:
            ending = Ending("steps", f"all {self.steps} steps done")
        elif self.replicas.alone and self._late():
            ending = self._of_time()
        if ending is None and self.step % self.every:
            return None
        if self.checkpoints.path is not None:
            check()
            self.checkpoints.save(self.step)
        wish = self.evaluate()
        # All workers must end at the same step although their clocks, and what their callbacks see,
        # differ: the first that wants to end decides for all.
        by_callback, late = self.replicas.mean([wish is not None, self._late()])
        if ending is None and by_callback:
            why = wish or "of another worker"
            ending = Ending("callback", f"a callback ended the fit after step {self.step}: {why}")
        elif ending is None and late:
            ending = self._of_time()
        return ending

    def _late(self) -> bool:
        limit = self.max_seconds
        return limit is not None and time.perf_counter() - self.started >= limit

    def _of_time(self) -> Ending:
        words = f"max_seconds={self.max_seconds} were over after step {self.step}"
        return Ending("max_seconds", words)

    def evaluate(self) -> str | None:
        """Call the callbacks, unless they have been called after this step.

        :returns: why one of them wants the fit to end, if one does.
        """
        if not self.callbacks or self._called_at == self.step:
            return None
        self._called_at, wish = self.step, None
        metrics: dict[str, float] = {"step": self.step}
        for callback in self.callbacks:
            try:
                returned = callback(self.step, self.model)
            except StopFit as stop:
                wish, returned = str(stop), stop.metrics
            except StopIteration as error:  # SciPy would take it for a wish to stop
                raise RuntimeError(
                    f"callbacks: {callback!r} raised StopIteration; to end a fit, raise "
                    "interdomain.training.StopFit."
                ) from error
            try:
                metrics |= {name: float(np.asarray(x)) for name, x in (returned or {}).items()}
            except (AttributeError, TypeError, ValueError) as error:
                raise ValueError(
                    "callbacks: a callback must return a mapping from names to numbers, or None; "
                    f"{callback!r} returned {returned!r}."
                ) from error
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
    batches: Batches,
    replicas: Replicas,
    *,
    checkpoint_dir: str | os.PathLike[str] | None,
    resume: bool,
    **how: Any,
) -> FitResult:
    """Run the steps of a method, from the beginning or from a checkpoint.

    :param method: :class:`.lbfgs.LBFGS` or :class:`.steps.GradientSteps`.
    :param how: other arguments of :class:`Run`.
    """
    if not method.variables:
        raise ValueError(
            f"model: this {type(model).__name__} has no trainable variables; call "
            "gpflow.set_trainable(parameter, True) on those to train."
        )
    ended = tf.Variable("", trainable=False)  # the reason for which L-BFGS has ended
    checkpoints = Checkpoints(
        checkpoint_dir,
        resume or (checkpoint_dir is not None and not replicas.is_chief),
        fit="" if checkpoint_dir is None else described(model, method.described),
        writes=replicas.is_chief,
        model=model,
        ended=ended,
        **method.stored,
    )
    replicas.start(checkpoints)
    run = Run(model, method.variables, checkpoints, replicas, exact=batches.exact, **how)
    first_step = run.step
    reason: Any = ended.numpy().decode() or "steps"
    ending = Ending(reason, "the checkpoint is of a fit that had ended")
    try:
        if reason == "steps" and first_step < run.steps:
            ending = method.train(run)
            if ending.reason in ("converged", "stalled"):
                ended.assign(ending.reason)
                checkpoints.save(run.step)
        run.evaluate()
    except NumericalBreakdown as error:
        run.restore()
        rows = batches.arrays
        cause = None if rows is None else failing_likelihood(model, *rows)
        where = run.step + 1, run.kept_step, checkpoints.latest
        raise NonFiniteError(str(error), *where, cause) from error
    finally:
        run.close()
    replicas.mean([0.0])  # all wait until the chief has written its checkpoint
    return FitResult(
        steps=run.step,
        first_step=first_step,
        elbos=np.array(run.elbos, np.float64),
        elbo=run.running_elbo,
        metrics=tuple(run.metrics),
        seconds=time.perf_counter() - run.started,
        reason=ending.reason,
        message=ending.message,
        checkpoint=checkpoints.latest,
    )


def described(model: Any, settings: Mapping[str, Any]) -> str:
    """What tells one fit from another, one ``name: value`` a line."""
    parameters = {
        path.removeprefix("."): f"{parameter.dtype.name} {list(parameter.shape)}"
        + ("" if parameter.trainable else ", not trainable")
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
    }
    lines = {"model": type(model).__name__, **parameters, **settings}
    if isinstance(model, RowsModel):
        lines["features"] = model.features_checksum
    return "\n".join(f"{name}: {value}" for name, value in lines.items())
