"""The benchmark of other likelihoods: its table, and a short run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks import any_likelihood

InThisProcess = Callable[[ModuleType], None]


def test_passes_until_the_bound_is_near_its_best() -> None:
    assert any_likelihood.passes_to_optimum([-10.0, -5.0, -4.05, -4.2, -4.0]) == 3
    assert any_likelihood.passes_to_optimum([-4.0]) == 1


def test_the_table_names_the_passes() -> None:
    run = {"data": "power", "method": "collapsed", "num_inducing": 500}
    result = {
        "trace": [{"seconds": 12.0, "log_density": -0.25}],
        "elbos": [-9.0, -4.0],
        "reason": "converged",
        "subset_seconds": 3.0,
        "pass_seconds": 4.0,
    }
    text = any_likelihood.table_of([{"configuration": run, "result": result}])
    assert "-0.2500 (12 s)" in text
    assert "2 passes (converged), within 0.1 nats of the last after 2" in text


@pytest.mark.full
def test_short_run(tmp_path: Path, in_this_process: InThisProcess) -> None:
    """Counts at places of the earth."""
    in_this_process(any_likelihood)
    methods = ["collapsed", "diagonal_natural", "svgp_200"]
    options = ["--short", "--results", str(tmp_path), "--methods", ",".join(methods)]
    assert any_likelihood.AnyLikelihood().main(options) == 0
    lines = (tmp_path / "any_likelihood.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["configuration"]["method"] for one in records] == methods
    traces = [one["result"]["trace"] for one in records]
    assert list(map(len, traces)) == [1, 2, 2]
    assert all(np.isfinite(point["log_density"]) for trace in traces for point in trace)
    assert max(records[0]["result"]["elbos"]) == records[0]["result"]["elbos"][-1]
