"""Timings, peak memory, and cells of tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.timing import alternate, ratio, summarise


def test_sides_take_turns() -> None:
    calls: list[str] = []
    sides: dict[str, Callable[[], None]] = {
        name: lambda name=name: calls.append(name) for name in ("a", "b")
    }
    samples = alternate(sides, rounds=3, warm_up=1, min_sample_seconds=0.0)
    assert calls == ["a", "a", "b", "b"] + ["a", "b", "b", "a", "a", "b"]
    assert {name: len(values) for name, values in samples.items()} == {"a": 3, "b": 3}
    with pytest.raises(ValueError, match="rounds is 0"):
        alternate(sides, rounds=0)


def test_ratios_are_taken_within_rounds() -> None:
    samples = {"slow": [2.0, 30.0, 4.0], "quick": [1.0, 10.0, 1.0]}
    assert ratio(samples, "slow", "quick")["median"] == 3.0
    assert summarise([1.0, 2.0, 3.0]) == {"median": 2.0, "lower": 1.5, "upper": 2.5}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is an estimate")
def test_peak_memory_of_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "allocating.py").write_text(
        "import numpy as np\n\n\ndef allocate(count):\n"
        "    return lambda: float(np.ones(count).sum())\n\n\n"
        "def fail():\n    raise OSError('out of luck')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import allocating  # type: ignore[import-not-found]

    measured = peak_bytes(allocating.allocate, count=5_000_000)
    assert 39e6 < measured < 44e6  # resident memory is counted to about 0.1 MB
    with pytest.raises(RuntimeError, match="out of luck"):
        peak_bytes(allocating.fail)
