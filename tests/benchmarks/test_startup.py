"""The benchmark of the first step: its rounds, its table, and the clock of a process."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest

from benchmarks._lib.child import ROOT
from benchmarks.startup import benchmark as startup
from benchmarks.startup import cases as startup_cases


def given(*options: str) -> argparse.Namespace:
    return startup.Startup()._parser().parse_args(options)


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def record(case: str, code: str, k: int, first: float, second: float) -> dict[str, Any]:
    again = {"seconds": second, "cpu_seconds": 2 * second, "graphs": 2, "growth_bytes": 7e6}
    return {
        "configuration": {"case": case, "code": code, "round": k, "seed": 0},
        "load_before": 0.25,
        "result": {
            "imports": {
                "tensorflow": {"seconds": 3.0},
                "gpflow": {"seconds": 2.0},
                "interdomain": {"seconds": 0.3},
            },
            "first": {"seconds": first, "cpu_seconds": 2 * first, "graphs": 9},
            "second": again,
            "third": {**again, "graphs": 0, "growth_bytes": 0.0},
        },
    }


def test_a_round_has_every_case_before_the_next_begins() -> None:
    benchmark = startup.Startup()
    runs = list(benchmark.configurations(given()))
    cases = list(startup_cases.CASES)
    assert [run["case"] for run in runs] == 3 * cases
    assert [run["round"] for run in runs] == [k for k in range(3) for _ in cases]
    assert {run["code"] for run in runs} == {"now"}
    (chosen,) = benchmark.configurations(
        given("--cases", "hvgp", "--rounds", "1", "--label", "before")
    )
    assert (chosen["case"], chosen["code"]) == ("hvgp", "before")
    short = list(benchmark.configurations(given("--short")))
    assert len(short) == len(startup.SHORT_CASES) and short[0]["num_data"] < runs[0]["num_data"]


def test_table_compares_each_label_with_the_figures_before() -> None:
    records = [record("svgp", "now", k, first, 0.4) for k, first in enumerate([1.5, 9.0, 1.9])]
    records += [record("convolutional", "now", 0, 4.5, 0.6)]
    records += [record("convolutional", "before", k, first, 3.0) for k, first in enumerate([8, 10])]
    text = startup.table_of(records)
    svgp, before, now = rows_of(text)
    assert svgp[:5] == ["svgp", "now", "3", "5 [5, 5]", "0.3 [0.3, 0.3]"]
    assert svgp[5:9] == ["1.9 [1.5, 9]", "3.8 [3, 18]", "<= 2: met", ""]
    assert svgp[9:] == ["0.4 [0.4, 0.4]", "0.8 [0.8, 0.8]", "<= 0.5: met", "2, 0", "7, 0"]
    assert before[1] == "before" and before[7:9] == ["", "9"]  # it is not half of itself
    assert now[1] == "now" and now[7:9] == ["<= 4.5: met", "9"]
    assert "first step, now: met by svgp (2 s), convolutional (4.5 s); NOT met by none" in text
    assert "second fit, now: met by svgp (0.5 s); NOT met by convolutional (0.5 s)" in text
    assert "interdomain adds 0.3 [0.3, 0.3] s (<= 0.4: met); load before them 0.25" in text


def test_nothing_that_is_timed_is_imported_before() -> None:
    code = (
        "import sys, benchmarks._lib.child, benchmarks.startup.cases as cases\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not found & {'numpy', 'scipy', 'tqdm', *cases.LIBRARIES}, found"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.parametrize("case", startup_cases.CASES)
def test_models_have_the_sizes_that_are_stated(case: str) -> None:
    sizes = startup.SHORT_SIZES
    make = startup_cases.random_images if case == "convolutional" else startup_cases.random_rows
    data = make(sizes, 0)
    model = startup_cases.build_model(case, data, sizes, 0)
    expected = {"hvgp": 8 * sizes["part_size"], "convolutional": sizes["num_patches"]}
    if case == "harmonizable":
        assert len(model.kernel.kernels) == startup_cases.COMPONENTS
    elif case == "orthogonal":
        points = model.orthogonal_inducing_variable
        assert int(model.inducing_variable.num_inducing) == int(points.num_inducing) == 54
    else:
        found = int(model.inducing_variable.num_inducing)
        assert found == expected.get(case, sizes["num_inducing"])


def test_a_process_times_three_fits() -> None:
    sizes = {**startup.SHORT_SIZES, "num_inducing": 5}
    result = startup_cases.measure(case="svgp", seed=0, **sizes)
    assert set(result["imports"]) == set(startup_cases.LIBRARIES)
    assert result["first"]["seconds"] > result["first"]["build_seconds"] > 0.0
    assert result["first"]["graphs"] > 0
    for name in ("second", "third"):
        times = result[name]
        assert times["seconds"] > 0.0 and times["cpu_seconds"] > 0.0 and times["graphs"] >= 0
