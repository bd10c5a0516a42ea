"""Why a fit ends: all steps are done, the time is over, or a callback asks for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..distributed import Workers
from .progress import Recorder

EndReason: TypeAlias = Literal["steps", "converged", "stalled", "max_seconds", "callback"]


@dataclass(frozen=True)
class Ending:
    """
    How a fit ended.

    :ivar reason: as in :class:`interdomain.training.FitResult`.
    :ivar message: the reason in words.
    """

    reason: EndReason
    message: str


class Endings:
    """
    Decides after each step whether it is the last.

    Several workers that train one model must end at the same step although their clocks differ.
    They therefore agree every ``every`` steps: the first that wants to end decides for all.

    :param started: when the fit began, by ``time.perf_counter``.
    :param max_seconds: the seconds that the fit may take; None for no limit.
    :param every: the number of steps between two calls of the callbacks.
    """

    def __init__(
        self,
        recorder: Recorder,
        workers: Workers,
        *,
        started: float,
        steps: int,
        max_seconds: float | None,
        every: int,
    ) -> None:
        self._recorder, self._workers = recorder, workers
        self._started, self._steps, self._max_seconds = started, steps, max_seconds
        self._every = every

    def after_step(self, step: int) -> Ending | None:
        """The ending, if all steps are done or the time is over; otherwise None."""
        if step >= self._steps:
            return Ending("steps", f"all {self._steps} steps done")
        if self._max_seconds is None:
            return None
        if self._workers.number > 1 and step % self._every:
            return None
        over = time.perf_counter() - self._started >= self._max_seconds
        words = f"max_seconds={self._max_seconds:g} were over after step {step}"
        return self._agreed(Ending("max_seconds", words) if over else None)

    def after_callbacks(self, step: int) -> Ending | None:
        """The ending, if a callback called after this step asked for it; otherwise None."""
        if self._recorder.evaluated_step != step:
            return None
        wish = self._recorder.wish_to_stop
        words = None if wish is None else f"a callback ended the fit after step {step}: {wish}"
        return self._agreed(None if words is None else Ending("callback", words))

    def _agreed(self, own: Ending | None) -> Ending | None:
        if self._workers.number == 1:
            return own
        answer = [] if own is None else [own.reason, own.message]
        for shared in self._workers.share(lambda: {"ending": np.array(answer, dtype=np.str_)}):
            if own is None and shared["ending"].size:
                own = Ending(*shared["ending"].tolist())
        return own
