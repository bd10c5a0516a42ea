"""What stays in memory is told for each repetition, and predictions that differ are."""

from __future__ import annotations

import pytest

from benchmarks.attack_memory import AttackMemory, measure


def test_the_table_says_what_grew() -> None:
    def record(case: str, **result: object) -> dict:
        run = {"case": case, "model": "svgp", "repeats": 100, "seed": 0}
        return {"configuration": run, "result": result}

    records = [
        record("models", first_bytes=500_000_000, last_bytes=770_000_000),
        record("threads", same=False),
    ]
    of_models, of_threads = AttackMemory().table(records).splitlines()[-2:]
    assert " 3.000 " in of_models and "NO" in of_threads


@pytest.mark.full
def test_threads_of_a_process() -> None:
    assert measure(case="threads", model="svgp", repeats=3, seed=0) == {"same": True}
