"""The benchmark of natural gradients: its tables, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import natural_gradients

InThisProcess = Callable[[ModuleType], None]


def raced(method: str, *densities: float) -> dict[str, Any]:
    seconds = [5.0, 10.0]
    run = {"kind": "race", "data": "power", "likelihood": "Gaussian", "method": method}
    trace = [
        {"seconds": at, "steps": 10 * at, "log_density": density}
        for at, density in zip(seconds, densities, strict=True)
    ]
    return {"configuration": {**run, "seconds": seconds}, "result": {"trace": trace}}


def test_the_best_of_each_kind_of_q_at_each_time() -> None:
    records = [
        raced("adam_diagonal", -0.5, -0.2),
        raced("natural_diagonal", -0.3, -0.25),
        raced("natural_full", -0.1, -0.1),
    ]
    table = natural_gradients.table_of(records)
    lines = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    cells = {(line[3], line[4]): line[5:8] for line in lines[2:]}
    assert cells["diagonal", "adam"] == ["-0.5000", "**-0.2000**", "100"]
    assert cells["diagonal", "natural"] == ["**-0.3000**", "-0.2500", "100"]
    assert cells["full", "natural"] == ["**-0.1000**", "**-0.1000**", "100"]


def test_the_aim() -> None:
    def record(model: str, found: float) -> dict[str, Any]:
        spread = {"median": found, "lower": found, "upper": found}
        sides = dict.fromkeys(natural_gradients.SIDES, spread)
        run = {"kind": "step", "model": model, "num_inducing": 500}
        return {"configuration": run, "result": {"seconds": sides, "ratios": sides}}

    lines = natural_gradients.table_of([record("SVGP", 1.2), record("HVGP", 1.3)]).splitlines()
    assert "1.25: met" in lines[2] and "1.25: missed" in lines[3]


@pytest.mark.full
def test_short_run(
    tmp_path: Path, in_this_process: InThisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each kind of q with both likelihoods, by Adam and by natural gradients; alternation."""
    in_this_process(natural_gradients)
    options = ["--short", "--rounds", "1", "--results", str(tmp_path)]
    gaussian, bernoulli = ["natural_diagonal", "alternation_full"], ["adam_diagonal", "adam_full"]
    for likelihood, methods in zip(
        natural_gradients.LIKELIHOODS, (gaussian, bernoulli), strict=True
    ):
        monkeypatch.setattr(natural_gradients, "LIKELIHOODS", (likelihood,))
        some = ["--methods", ",".join(methods)]
        assert natural_gradients.NaturalGradients().main([*options, *some]) == 0
    lines = (tmp_path / "natural_gradients.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len(records) == 3 + len(gaussian) + len(bernoulli)
    for one in records:
        assert one["result"].get("trace") or one["result"]["seconds"]["adam"]["median"] > 0
