"""The benchmark of other likelihoods: its table."""

from __future__ import annotations

from benchmarks import any_likelihood


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
