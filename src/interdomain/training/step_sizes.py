"""The sizes of natural-gradient steps, as functions of the number of steps before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from .._arguments import number, short
from ..sphere._typing import Array

NaturalGradient: TypeAlias = bool | float | Callable[[int], Any] | None
"""What ``fit`` takes: whether to take the default sizes, a constant, or a schedule."""

_REMEDY = "pass a number in (0, 1], True for the default, or a function of the number of steps"


@dataclass(frozen=True)
class _Rising:
    """From ``first`` to ``last`` by equal factors in ``steps`` steps, and constant then.

    For a full q, as Salimbeni, Eleftheriadis and Hensman (2018) raise theirs: the first gradients
    are those of a q, and of hyperparameters, that are soon left.
    """

    first: float
    last: float
    steps: int

    def __call__(self, step: int) -> float:
        part = min(step / self.steps, 1.0)
        return float(self.first ** (1 - part) * self.last**part)


@dataclass(frozen=True)
class _Falling:
    """``first / (1 + step / steps)``.

    For a diagonal q: its coordinates are coupled by the data and move at once, so that the noise of
    a minibatch adds up over all of them and sets a floor, which a constant size does not leave.
    """

    first: float
    steps: int

    def __call__(self, step: int) -> float:
        return self.first / (1 + step / self.steps)


def default_schedule(*, diagonal: bool, num_pairs: int) -> Callable[[int], float]:
    """The step sizes of ``natural_gradient=True`` for one of several q's.

    All q's move at once, each as if the others were fixed: n of them that explain the same data
    overshoot with steps larger than about ``1 / n``.
    """
    size = min(0.1, 1 / num_pairs)
    return _Falling(size, 300) if diagonal else _Rising(size / 100, size, 20)


class StepSizes:
    """The sizes for all q's at each step.

    :param given: As passed to ``fit``, neither None nor False.
    :param diagonal: For each q, whether its covariance is diagonal.
    :raises ValueError: If ``given`` is neither True, nor a number in (0, 1], nor a function whose
        first value is such a number.
    """

    def __init__(self, given: NaturalGradient, diagonal: tuple[bool, ...]) -> None:
        self._given = given
        self._schedules: list[Callable[[int], Any]]
        if given is True:
            count = len(diagonal)
            self._schedules = [default_schedule(diagonal=d, num_pairs=count) for d in diagonal]
        elif callable(given):
            self._schedules = [given] * len(diagonal)
        else:
            constant = number("natural_gradient", given)
            self._schedules = [lambda step: constant] * len(diagonal)
        self.at(0)

    def at(self, step: int) -> Array:
        """The sizes after so many steps, ``[number of q's]``.

        :raises ValueError: If one is not in (0, 1].
        """
        values = {id(schedule): schedule(step) for schedule in self._schedules}
        for value in values.values():
            if not 0 < number("natural_gradient", value) <= 1:
                where = f" at step {step}" if callable(self._given) else ""
                raise ValueError(
                    f"natural_gradient: found a step size of {short(value)}{where}; {_REMEDY}."
                )
        return np.array([float(values[id(schedule)]) for schedule in self._schedules])

    def describe(self) -> Any:
        """What must be the same for a resumed fit: of a function of the user's, the name, the
        configuration if it has one, and the first value."""
        given: Any = self._given
        if given is True:
            return [repr(schedule).strip("_") for schedule in dict.fromkeys(self._schedules)]
        if not callable(given):
            return float(given)
        name = getattr(given, "__qualname__", type(given).__name__)
        configuration = given.get_config() if hasattr(given, "get_config") else {}
        configuration.pop("name", None)
        return {"schedule": name, "first": float(self.at(0)[0]), **configuration}
