"""A short run of a benchmark, and what all of them have in common: names, imports, records."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

import benchmarks
from benchmarks import terrain
from benchmarks.__main__ import BENCHMARKS
from benchmarks._lib import runner
from benchmarks._lib.results import RESULTS_FOLDER, ResultFile
from benchmarks._lib.runner import command_of
from benchmarks.estimators import benchmark as estimators
from benchmarks.functionals.benchmark import Functionals
from benchmarks.papers.vish import vff_additive
from benchmarks.space_time.benchmark import SpaceTime


@pytest.mark.slow
def test_a_model_in_a_process_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--short", "--results", str(tmp_path), "--models", "box_60"]
    assert terrain.Terrain().main(options) == 0
    (record,) = ResultFile(tmp_path / "terrain.jsonl").records()
    assert record["configuration"]["model"] == "box_60"
    last = record["result"]["trace"][-1]
    assert 0 < last["rmse"] < 1 and last["seconds"] > 0  # better than the mean
    assert "| box_60 " in capsys.readouterr().out


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls what a benchmark measures here: each process of its own would import TensorFlow."""

    def called(
        function: Callable[..., Any],
        environment: Any = None,
        most_seconds: Any = None,
        **given: Any,
    ) -> Any:
        return json.loads(json.dumps(function(**json.loads(json.dumps(given)))))

    for module in (runner, estimators):
        monkeypatch.setattr(module, "from_child", called)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_rows_that_come_in_parts_are_rows_at_once(tmp_path: Path) -> None:
    """The benchmark of estimators, its part of streams: predictions differ by rounding."""
    options = ["--short", "--results", str(tmp_path), "--parts", "stream"]
    assert estimators.EstimatorsBenchmark().main(options) == 0
    for record in ResultFile(tmp_path / "estimators.jsonl").records():
        result = record["result"]
        assert max(result["mean_difference"], result["std_difference"]) < 1e-8, record


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_means_over_an_hour_are_better_than_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark of functionals, whose parts without their data are skipped with a message."""
    options = ["--short", "--results", str(tmp_path), "--parts", "hours,days"]
    assert Functionals().main(options) == 0
    records = ResultFile(tmp_path / "functionals.jsonl").records()
    errors = {one["configuration"]["model"]: one["result"]["rmse"] for one in records}
    assert errors["means"] < errors["values"] < 1
    printed = capsys.readouterr()
    assert "| hours  | means " in printed.out and "beijing_pm25.npz" in printed.err


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_space_and_time_outperform_their_baselines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark of space and time, whose parts without their data are skipped."""
    options = ["--short", "--results", str(tmp_path), "--parts", "hours,growth,pm10"]
    assert SpaceTime().main(options) == 0
    records = ResultFile(tmp_path / "space_time.jsonl").records()
    found = {
        one["configuration"]["model"]: one["result"]
        for one in records
        if one["configuration"]["part"] == "hours"
    }
    for name, baseline in (("unseen", "nearest"), ("ahead", "yesterday")):
        assert found["space_time"][name]["rmse"] < found[baseline][name]["rmse"]
    assert (tmp_path / "space_time.png").stat().st_size > 5_000
    assert "pm10_germany_2005.npz" in capsys.readouterr().err


# Where the benchmarks' files may import from, and that every command has the name it states.

FOLDER = Path(benchmarks.__file__).parent


def test_a_question_imports_helpers_and_its_own_files_only() -> None:
    """Imports inside of functions included."""
    for path in FOLDER.rglob("*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        own = "benchmarks." + ".".join(parts[:2] if parts[0] == "papers" else parts[:1])
        lines = re.findall(r"^ *(?:from|import) (benchmarks[\w.]*)", path.read_text(), re.M)
        if parts != ("__main__",):
            allowed = (own, "benchmarks._lib")
            foreign = [name for name in lines if not f"{name}.".startswith(allowed)]
            assert not foreign, f"{path.relative_to(FOLDER)} imports {sorted(foreign)}"


def test_every_benchmark_is_a_command() -> None:
    readme = (FOLDER / "README.md").read_text()
    for kind in BENCHMARKS.values():
        command = command_of(kind)
        spec = importlib.util.find_spec(command)
        assert spec is not None, command
        if spec.submodule_search_locations:
            assert importlib.util.find_spec(f"{command}.__main__") is not None, command
        assert f"| `python -m {command}` |" in readme, command


# The schema of the stored results: what tables, pages and pictures need of them.

FILES = sorted(RESULTS_FOLDER.glob("*.jsonl"))
ENVIRONMENT = {"environment", "python", "system", "processor", "cores", "packages", "commit"}


def check(record: Any, name: str, line: str) -> None:
    assert not re.search(r'"[/~]|NaN|Infinity', line)  # no path of a machine, and JSON
    if "configuration" not in record:
        assert set(record) == ENVIRONMENT and record["cores"] >= 1
        assert {"gpflow", "tensorflow", "numpy"} <= set(record["packages"])
        return
    assert record["benchmark"] == name
    assert record["configuration"] and record["result"] and record["seconds"] >= 0
    for value in record["configuration"].values():  # flat: the key of finished work
        parts = value if isinstance(value, list) else [value]
        assert all(part is None or isinstance(part, str | int | float) for part in parts), value
    assert record["load_before"] is None or record["load_before"] >= 0
    assert datetime.fromisoformat(record["finished_at"]).utcoffset() == timedelta(0)


def test_every_file_is_complete_and_makes_a_table() -> None:
    assert len(FILES) > 20
    for path in FILES:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            try:
                check(json.loads(line), path.stem, line)
            except (AssertionError, KeyError, ValueError) as error:
                raise AssertionError(f"{path.name}, line {number}: {error!r}") from error
        records = ResultFile(path).records()
        assert all(record["environment"]["packages"] for record in records)
        text = BENCHMARKS[path.stem]().table(records)
        assert text.count("\n|") >= 2, f"{path.name} makes no table"


def test_records_can_be_drawn(tmp_path: Path) -> None:
    """The benchmark whose pictures show only records is drawn; others need data, or fit a model."""
    benchmark = BENCHMARKS["pareto"]()
    records = ResultFile(RESULTS_FOLDER / "pareto.jsonl").records()
    benchmark.draw(tmp_path, records, benchmark._parser().parse_args([]))
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn and all((tmp_path / one).stat().st_size > 5_000 for one in drawn)
    assert drawn >= {path.name for path in RESULTS_FOLDER.glob("pareto*.png")}


# What the margin of an interval costs: figures of benchmarks/README.md.


def test_what_a_margin_costs() -> None:
    """The figures of VariationalFourierFeatures.from_data, too: a margin in lengthscales."""
    lengthscale = 0.4
    X = np.array([[0.0], [1.0]])
    kernel = gpflow.kernels.Sum([gpflow.kernels.Matern32(1.0, lengthscale)])
    for margin, lost in ((1.0, 0.15), (2.0, 0.015), (2.5, 0.004)):
        features = vff_additive.fourier_features(X, 100, margin * lengthscale)
        columns = gpflow.covariances.Kuf(features, kernel, X)
        prior = gpflow.covariances.Kuu(features, kernel)
        explained = np.sum(columns * np.linalg.solve(prior, columns), axis=0)
        np.testing.assert_allclose(1 - explained, lost, rtol=0.1)
