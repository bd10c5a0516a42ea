"""Times of several ways of doing the same work, and their ratios.

The sides take turns, and each round starts with another side, so that other load on the machine
affects all of them alike. A sample repeats a quick side until it lasts at least
`min_sample_seconds` and takes the mean. The ratio of two sides is computed within each round; its
median and quartiles are reported, so that one disturbed round does not matter.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

Samples = dict[str, list[float]]  # seconds per call of each side, one number per round


def alternate(
    sides: Mapping[str, Callable[[], Any]],
    *,
    rounds: int = 11,
    warm_up: int = 2,
    min_sample_seconds: float = 0.05,
    description: str | None = None,
) -> Samples:
    """The seconds per call of each side in each round.

    :param sides: callables without arguments; the time ends when their result is available.
    :param warm_up: calls of each side before the first sample (tracing, caches, thread pools).
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}: at least one is needed")
    repeats = {}
    for name, side in sides.items():
        for _ in range(warm_up):
            wait_for(side())
        repeats[name] = max(1, math.ceil(min_sample_seconds / max(_sample(side, 1), 1e-9)))

    samples: Samples = {name: [] for name in sides}
    order = list(sides)
    for k in tqdm(range(rounds), desc=description, leave=False, disable=description is None):
        for name in order[k % len(order) :] + order[: k % len(order)]:
            samples[name].append(_sample(sides[name], repeats[name]))
    return samples


def summarise(values: Sequence[float]) -> dict[str, float]:
    """The median and the quartiles of values."""
    lower, median, upper = np.quantile(np.asarray(values), [0.25, 0.5, 0.75])
    return {"median": float(median), "lower": float(lower), "upper": float(upper)}


def ratio(samples: Samples, numerator: str, denominator: str) -> dict[str, float]:
    """The time of `numerator` divided by the time of `denominator`: median and quartiles."""
    pairs = zip(samples[numerator], samples[denominator], strict=True)
    return summarise([above / below for above, below in pairs])


def wait_for(result: Any) -> Any:
    """Return `result` when every tensor in it has its value."""
    if isinstance(result, list | tuple):
        for item in result:
            wait_for(item)
    elif hasattr(result, "numpy"):
        result.numpy()  # no copy on a CPU
    return result


def _sample(side: Callable[[], Any], repeats: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            wait_for(side())
        return (time.perf_counter() - start) / repeats
    finally:
        gc.enable()
