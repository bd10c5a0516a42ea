"""Records the ELBOs and the results of callbacks while a fit runs, and shows a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from gpflow.base import AnyNDArray
from tqdm import tqdm

Callback = Callable[[int, Any], Mapping[str, float] | None]


class StopFit(Exception):
    """
    An exception to raise in a callback, to end the fit after the present step.

    The remaining callbacks of this step are still called, a checkpoint is written as at any other
    end, and ``FitResult.reason`` is "callback".

    :param reason: why the fit ends, for ``FitResult.message``.
    :param metrics: numbers by name, as a callback returns them.
    """

    def __init__(self, reason: str = "no reason given", metrics: Mapping[str, float] | None = None):
        super().__init__(reason)
        self.metrics = metrics


_SMOOTHING = 0.95  # of the running ELBO: an average over about the last 20 minibatches


class Recorder:
    """
    Collects ELBOs and metrics of the steps ``first_step + 1, ..., steps``; a context manager that
    holds the progress bar open.

    :param exact: whether each recorded ELBO is the exact one, and needs no averaging.
    :ivar evaluated_step: the step after which the callbacks were last called.
    :ivar wish_to_stop: why a callback wants the fit to end, if one does.
    """

    def __init__(
        self,
        model: Any,
        *,
        first_step: int,
        steps: int,
        exact: bool,
        callbacks: Sequence[Callback],
        callback_every: int,
        progress: bool,
    ) -> None:
        self._model = model
        self._smoothing = 0.0 if exact else _SMOOTHING
        self._average = 0.0
        self._elbos: list[float] = []
        self._callbacks = tuple(callbacks)
        self._callback_every = callback_every
        self.evaluated_step: int | None = None
        self.wish_to_stop: str | None = None
        self.metrics: list[Mapping[str, float]] = []
        # Plain tqdm, not tqdm.auto: the same line in terminals, notebooks and executed notebooks,
        # without ipywidgets. Redrawn less often where lines pile up in a log.
        self._bar = tqdm(
            total=steps,
            initial=first_step,
            desc="fit",
            unit="step",
            file=sys.stderr,
            disable=not progress,
            dynamic_ncols=True,
            mininterval=0.1 if sys.stderr.isatty() else 2.0,
        )

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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

    def step(self, elbo: float) -> None:
        """Record one step."""
        self._elbos.append(elbo)
        self._average = self._smoothing * self._average + (1.0 - self._smoothing) * elbo
        self._show()
        self._bar.update(1)

    def evaluate(self, step: int, *, last: bool = False) -> None:
        """Run the callbacks if ``step`` is one of theirs, or the last one."""
        due = last or step % self._callback_every == 0
        if not self._callbacks or not due or step == self.evaluated_step:
            return
        metrics: dict[str, float] = {"step": step}
        for callback in self._callbacks:
            try:
                returned = callback(step, self._model)
            except StopFit as wish:
                self.wish_to_stop, returned = str(wish), wish.metrics
            except StopIteration as error:  # SciPy would take it for a wish to stop
                raise RuntimeError(
                    f"callbacks: {callback!r} raised StopIteration; to end a fit, raise "
                    "interdomain.training.StopFit."
                ) from error
            if returned is None:
                continue
            try:
                metrics.update({name: _as_float(value) for name, value in returned.items()})
            except (AttributeError, TypeError, ValueError) as error:
                raise ValueError(
                    "callbacks: a callback must return a mapping from names to numbers, or None; "
                    f"{callback!r} returned {returned!r}."
                ) from error
        self.evaluated_step = step
        self.metrics.append(metrics)
        self._show()

    def _show(self) -> None:
        shown = {"elbo": self.running_elbo} if self._elbos else {}
        if self.metrics:
            shown |= {name: value for name, value in self.metrics[-1].items() if name != "step"}
        text = ", ".join(f"{name}={value:.6g}" for name, value in shown.items())
        self._bar.set_postfix_str(text, refresh=False)


def _as_float(value: Any) -> float:
    return float(value.numpy() if hasattr(value, "numpy") else value)
