"""Settings that make the whole suite faster without changing its tests; and shared fixtures."""

import contextlib
import ctypes
import functools
import gc
import os
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Before TensorFlow reads them. The tests compile with XLA to see whether and what it computes; how
# well LLVM optimises the machine code does not matter, and takes about a sixth of the time.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
)

# TensorFlow checks for each argument of each operation whether it is a tensor, which is a Protocol.
# Before Python 3.12, which caches them, the names of a Protocol are collected again each time. That
# is a seventh of the time of eager code.
if sys.version_info < (3, 12):
    vars(typing)["_get_protocol_attrs"] = functools.cache(vars(typing)["_get_protocol_attrs"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first: the last ones, which one process runs while the other has
    nothing left to do, are then short."""
    first = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in first)


def pytest_collection_finish() -> None:
    """Imported objects stay, so the garbage collector skips them.

    And TensorFlow Probability's bijectors remember nothing. Their cache saves work only where the
    same tensor is transformed twice; it takes 9 s of 69 s in tests/conformance/test_classes.py,
    tests/models/svgp/test_additive_svgp.py and tests/families/harmonizable, and keeps symbolic
    tensors of graphs alive. No public setting turns it off, hence the private method.
    """
    if "interdomain" in sys.modules:
        import tensorflow as tf
        from tensorflow_probability.python.internal.cache_util import BijectorCache

        BijectorCache._lookup = lambda self, x, name, _, **more: self._invoke(x, name, more, {})
        # The default. If it is not stored, each operation raises and catches an exception for it.
        tf.debugging.enable_traceback_filtering()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


CLEANED_AT = [0]
GROWTH = 2**29
"""By so many bytes a process may grow before what it keeps of graphs is looked through."""


def resident_bytes() -> int:
    """The memory of this process; more than ever where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return CLEANED_AT[0] + 2 * GROWTH
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(autouse=True, scope="module")
def few_graphs_outlive_their_file() -> Iterator[None]:
    """Bounds the memory of a process: a graph that was compiled takes megabytes, and would stay.

    TensorFlow remembers the gradient function of each ``tf.custom_gradient`` that was traced.
    """
    yield
    if "interdomain" not in sys.modules or resident_bytes() < CLEANED_AT[0] + GROWTH:
        return
    from tensorflow.python.framework import ops

    from interdomain.families.sphere.mathematics import (
        harmonic_products,
        harmonics,
        laplace_beltrami,
    )

    for module in (harmonics, harmonic_products, laplace_beltrami):
        module._compiled.cache_clear()  # their graphs need their gradient functions
    registered = ops.gradient_registry._registry
    for name in [name for name in registered if name.startswith("CustomGradient-")]:
        del registered[name]
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:  # glibc keeps what is freed for itself, unless it is asked
        trim(0)
    CLEANED_AT[0] = resident_bytes()


SHAPES_CHECKED = (
    "test_registry",
    "test_docstrings",
    "core",
    "vecchia_sgpr",
    "structured_sgpr",
    "sums",
)
"""Files and folders. Between them they call all that has its shapes checked; elsewhere the checks
would take an eighth of the time."""


@pytest.fixture(autouse=True, scope="module")
def shapes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Turns the checks of shapes off, but where they are tested."""
    from check_shapes import disable_check_shapes

    checked = {request.path.stem, request.path.parent.name} & {*SHAPES_CHECKED}
    with contextlib.nullcontext() if checked else disable_check_shapes():
        yield


@pytest.fixture
def no_jitter() -> Iterator[None]:
    """Diagonal operators take no jitter and dense ones do: without any, both are the same."""
    import gpflow

    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        yield


@pytest.fixture
def compiled_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """`predict_in_batches` compiles before the first batch, not after a few batches."""
    from interdomain import serving

    monkeypatch.setattr(serving, "_FEW_BATCHES", 0)


@pytest.fixture
def computed_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows had their features computed in passes over data, batch by batch."""
    import tensorflow as tf

    from interdomain.sums.protocol import Sums

    computed: list[int] = []
    original = Sums.tensors

    def counted(self: Any, X: Any, Y: Any) -> Any:
        if tf.executing_eagerly():
            computed.append(len(X))
        return original(self, X, Y)

    monkeypatch.setattr(Sums, "tensors", counted)
    return computed


# The suite's check of itself: a test that is not marked `slow` is over after 20 s of one core, of
# threads and ended child processes too, so that what else the machine does changes nothing.

CPU_SECONDS = 20.0
BEGUN = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """The seconds of this process and of its ended children."""
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
