"""One run of steps: what is recorded and shown of it, when it is kept, and when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.base import AnyNDArray

from .._progress import progress_bar
from .checkpoints import Checkpoints
from .replicas import Replicas
from .results import Ending

Callback = Callable[[int, Any], Mapping[str, float] | None]


class StopFit(Exception):
    """
    An exception to raise in a callback, to end the fit after the present step.

    The remaining callbacks of this step are still called, and ``FitResult.reason`` is "callback".

    :param reason: why the fit ends, for ``FitResult.message``.
    :param metrics: numbers by name, as a callback returns them.
    """

    def __init__(self, reason: str = "no reason given", metrics: Mapping[str, float] | None = None):
        super().__init__(reason)
        self.metrics = metrics


_SMOOTHING = 0.95  # of the running ELBO: an average over about the last 20 minibatches


class Run:
    """
    The steps ``step + 1, ..., steps`` of a fit.

    :param variables: those that are trained; their last good values are kept.
    :param exact: whether each recorded ELBO is the exact one, and needs no averaging.
    :param every: the number of steps between two checkpoints, and two calls of the callbacks.
    :param started: when the fit began, by ``time.perf_counter``.
    :ivar step: the last step that is done.
    :ivar kept_step: the step that led to the values that are kept.
    :ivar metrics: what the callbacks returned.
    """

    def __init__(
        self,
        model: Any,
        variables: Sequence[tf.Variable],
        checkpoints: Checkpoints,
        replicas: Replicas,
        *,
        steps: int,
        exact: bool,
        progress: bool,
        started: float,
        callbacks: Sequence[Callback] = (),
        every: int = 100,
        max_seconds: float | None = None,
    ) -> None:
        self.step, self.steps, self.every = checkpoints.step, steps, every
        self.metrics: list[Mapping[str, float]] = []
        self._model, self._variables = model, tuple(variables)
        self._checkpoints, self._replicas = checkpoints, replicas
        self._callbacks, self._called_at = tuple(callbacks), -1
        self._started, self._max_seconds = started, max_seconds
        self._smoothing = 0.0 if exact else _SMOOTHING
        self._average, self._elbos = 0.0, list[float]()
        self.keep(self.step)
        self._bar = progress_bar(
            "fit", "step", steps, shown=progress and replicas.is_chief, initial=self.step
        )

    def close(self) -> None:
        """Leave the progress bar as it is."""
        self._show()
        self._bar.close()

    @property
    def elbos(self) -> AnyNDArray:
        """The ELBO of every recorded step."""
        return np.array(self._elbos, dtype=np.float64)

    @property
    def running_elbo(self) -> float:
        """Exponential moving average of the ELBOs, free of the bias of its start at zero."""
        if not self._elbos:
            return float("nan")
        return self._average / (1.0 - self._smoothing ** len(self._elbos))

    def values(self) -> list[tf.Tensor]:
        """The present values of the variables. TensorFlow copies a buffer only when an update would
        write into it."""
        return [variable.read_value() for variable in self._variables]

    def keep(self, step: int, values: Sequence[tf.Tensor] | None = None) -> None:
        """Remember values, by default the present ones, as good: those after this step."""
        self.kept_step, self._kept = step, self.values() if values is None else values

    def restore(self) -> None:
        """Give the variables the remembered values again."""
        for variable, value in zip(self._variables, self._kept, strict=True):
            variable.assign(value)

    def after_step(self, elbo: float, check: Callable[[], None] = lambda: None) -> Ending | None:
        """
        Record a step. At a multiple of ``every``, and at the end, write a checkpoint and call the
        callbacks.

        :param check: raises an error if the present parameters must not be kept.
        :returns: the ending, if this was the last step; otherwise None.
        """
        self.step += 1
        self._elbos.append(elbo)
        self._average = self._smoothing * self._average + (1.0 - self._smoothing) * elbo
        self._show()
        self._bar.update(1)
        ending = None
        if self.step >= self.steps:
            ending = Ending("steps", f"all {self.steps} steps done")
        elif self._replicas.alone and self._late():
            ending = self._of_time()
        if ending is None and self.step % self.every:
            return None
        if self._checkpoints.path is not None:
            check()
            self._checkpoints.save(self.step)
        wish = self.evaluate()
        # All workers must end at the same step although their clocks, and what their callbacks see,
        # differ: the first that wants to end decides for all.
        by_callback, late = self._replicas.mean([wish is not None, self._late()])
        if ending is None and by_callback:
            words = (
                f"a callback ended the fit after step {self.step}: {wish or 'of another worker'}"
            )
            ending = Ending("callback", words)
        elif ending is None and late:
            ending = self._of_time()
        return ending

    def _late(self) -> bool:
        limit = self._max_seconds
        return limit is not None and time.perf_counter() - self._started >= limit

    def _of_time(self) -> Ending:
        words = f"max_seconds={self._max_seconds} were over after step {self.step}"
        return Ending("max_seconds", words)

    def evaluate(self) -> str | None:
        """Call the callbacks, unless they have been called after this step.

        :returns: why one of them wants the fit to end, if one does.
        """
        if not self._callbacks or self._called_at == self.step:
            return None
        self._called_at, wish = self.step, None
        metrics: dict[str, float] = {"step": self.step}
        for callback in self._callbacks:
            try:
                returned = callback(self.step, self._model)
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
        shown = {"elbo": self.running_elbo} if self._elbos else {}
        if self.metrics:
            shown |= {name: value for name, value in self.metrics[-1].items() if name != "step"}
        text = ", ".join(f"{name}={value:.6g}" for name, value in shown.items())
        self._bar.set_postfix_str(text, refresh=False)
