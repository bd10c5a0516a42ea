"""Training by minibatches with looks at the model at given times and after given steps. By default
the times are those of this process's processors, which other work on the machine hardly changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

Trace = list[dict[str, float]]
"""Of each look "seconds", "steps", and what was found, by name."""

MOST_STEPS = 10**6


def trained_with_looks(
    model: Any,
    data: tuple[NDArray[Any], NDArray[Any]],
    evaluate: Callable[[Any], Mapping[str, float]],
    *,
    seconds: Sequence[float],
    started: float,
    steps: Sequence[int] = (),
    clock: Callable[[], float] = time.process_time,
    options: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Trace:
    """Train until all times have passed, and look when one has, and after each number of steps;
    looks do not count.

    :param evaluate: What is found, by name.
    :param seconds: The times, rising.
    :param started: When the clock began.
    :param options: Of `idm.fit`, and `arguments`, too.
    """
    import interdomain as idm

    trace: Trace = []
    apart, over = 0.0, 0

    def look(step: int, model: Any) -> None:
        nonlocal apart, over
        before = clock()
        passed = before - started - apart
        due = sum(passed >= one for one in seconds)
        if due > over or step in steps:
            trace.append({"seconds": passed, "steps": float(step), **evaluate(model)})
            apart += clock() - before
        over = due
        if over == len(seconds):
            raise idm.training.StopFit("all times have passed")

    idm.fit(
        model,
        data,
        steps=MOST_STEPS,
        callbacks=[look],
        progress=False,
        options={"every": 1, **(options or {})},
        **arguments,
    )
    return trace


def bound_per_row(
    model: Any, X: NDArray[Any], Y: NDArray[Any], num_data: int
) -> Callable[[], float]:
    """The ELBO for each row, estimated on the same rows every time; compiled once."""
    import tensorflow as tf

    rows = (tf.constant(X), tf.constant(Y))
    elbo = tf.function(lambda: model.elbo(rows))
    return lambda: float(elbo()) / num_data


def at_time(trace: Trace, seconds: float) -> dict[str, float] | None:
    """The first look at that time or later; None if there is none."""
    return next((one for one in trace if one["seconds"] >= seconds), None)


def at_step(trace: Trace, steps: float) -> dict[str, float] | None:
    """The look after that step; None if there is none."""
    return next((one for one in trace if one["steps"] == steps), None)


def common_steps(traces: Iterable[Trace], steps: Sequence[int]) -> int | None:
    """The largest of some numbers of steps that all of the trainings have reached."""
    reached = [{one["steps"] for one in trace} for trace in traces]
    return max((step for step in steps if all(step in one for one in reached)), default=None)


def seconds_per_step(trace: Trace) -> float:
    """Between the first look and the last: without the start."""
    first, last = trace[0], trace[-1]
    if last["steps"] == first["steps"]:
        return last["seconds"] / max(last["steps"], 1.0)
    return (last["seconds"] - first["seconds"]) / (last["steps"] - first["steps"])
