"""The suite's check of itself: a test that is not marked `slow` is over after 20 s of one core.

Seconds of the processor are counted, of threads and ended child processes too, from the first
fixture to the last line of the test, so that what else the machine does changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

CPU_SECONDS = 20.0
BEGUN = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Of this process and of its ended children."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[BEGUN] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    result = yield
    seconds = cpu_seconds() - item.stash[BEGUN]
    item.user_properties.append(("cpu_seconds", seconds))
    if seconds > CPU_SECONDS and item.get_closest_marker("slow") is None:
        pytest.fail(
            f"the test needs {seconds:.1f} s of one core, and may need {CPU_SECONDS:.0f}: make it "
            "cheaper (smaller, not compiled, a shared fixture), or mark it slow if it starts "
            "processes, kills, resumes or runs benchmarks (CONTRIBUTING, Tests)"
        )
    return result
