"""Timings, peak memory, tables, and the mathematics inside the benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

from benchmarks import basis, structure, uci_vish
from benchmarks._lib import vish_table
from benchmarks._lib.memory import peak_bytes
from benchmarks._lib.tables import PaperFigure, markdown, mean_and_deviation, ranges
from benchmarks._lib.timing import alternate, ratio, summarise


@pytest.mark.full
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


@pytest.mark.full
def test_quick_sides_are_repeated() -> None:
    calls: list[None] = []
    alternate({"a": lambda: calls.append(None)}, rounds=2, min_sample_seconds=0.001)
    assert len(calls) > 20


def test_ratios_are_taken_within_rounds() -> None:
    samples = {"slow": [2.0, 30.0, 4.0], "quick": [1.0, 10.0, 1.0]}
    assert ratio(samples, "slow", "quick")["median"] == 3.0
    assert summarise([1.0, 2.0, 3.0]) == {"median": 2.0, "lower": 1.5, "upper": 2.5}


@pytest.mark.full
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


def test_verdicts_on_a_papers_figure() -> None:
    figure = PaperFigure(0.122, 0.02)
    assert str(figure) == "0.122 ± 0.02"
    assert figure.verdict(0.160) == "yes"
    assert figure.verdict(0.170) == "undecided, worse"
    assert figure.verdict(0.180) == "no, worse"
    assert figure.verdict(0.060) == "no, better"
    assert PaperFigure(0.004, 0.00).verdict(0.0041) == "undecided, worse"


def test_cells() -> None:
    assert ranges([3, 0, 1, 2, 7]) == "0-3, 7"
    assert mean_and_deviation([1.0]) == "1.000"
    assert mean_and_deviation([1.0, 2.0]) == "1.500 ± 0.707"
    lines = markdown(("a", "b"), [("1.50", None)]).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == ["1.50", ""]
    with pytest.raises(ValueError, match="2 headers"):
        markdown(("a", "b"), [("1.50", None, "one more")])


def test_numbers_of_harmonics() -> None:
    for dimension in (3, 9, 20):
        counts = [basis.harmonics_of_degree(dimension, degree) for degree in range(6)]
        assert counts[:2] == [1, dimension]
        for degree in range(6):
            assert sum(counts[: degree + 1]) == structure.number_of_harmonics(dimension, degree)
    assert [structure.number_of_harmonics(9, degree) for degree in (3, 4, 5)] == [210, 660, 1782]
    for _, (num_inducing, max_degree) in vish_table.SIZES.items():
        assert num_inducing in {
            structure.number_of_harmonics(dimension, max_degree) for dimension in (5, 7, 9)
        }


@pytest.mark.parametrize("dimension", [3, 9])
def test_normalised_gegenbauer(dimension: int) -> None:
    t, alpha = np.linspace(-1.0, 1.0, 11), 0.5 * dimension - 1.0
    for degree, values in enumerate(basis.normalised_gegenbauer(t, dimension, 8)):
        expected = eval_gegenbauer(degree, alpha, t) / eval_gegenbauer(degree, alpha, 1.0)
        np.testing.assert_allclose(values, expected, atol=1e-13)


def uci_record(method: str, split: int, mse: float, nlpd: float | None, **more: object) -> dict:
    run = {"dataset": "concrete", "method": method, "split": split, "seed": split}
    run |= {"max_iterations": 10, "source": "files", **more}
    result = {"mse": mse, "nlpd": nlpd, "fit_seconds": 1.0, "converged": split == 0}
    return {"configuration": run, "result": result}


def rows_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_table_of_vish() -> None:
    records = [
        uci_record("svgp", 0, 0.2, 0.374),
        uci_record("vish", 0, 0.12, 0.33),
        uci_record("vish", 1, 0.13, 0.35),
        uci_record("vish", 1, 0.5, None, source="loaders"),
    ]
    stored_mse, stored_nlpd, seeded_mse, seeded_nlpd, svgp_mse, _ = rows_of(
        uci_vish.table_of(records)
    )
    assert stored_mse[:7] == [
        *("concrete", "vish", "210", "MSE"),
        *("0.1250 ± 0.0071", "0.122 ± 0.02", "yes"),
    ]
    assert stored_mse[7:] == ["0-1 (stored)", "1.0", "1 of 2 at 10"]
    assert stored_nlpd[5] == "0.336 ± 0.07"
    assert seeded_mse[6:8] == ["no, worse", "1 (seeded)"]
    assert seeded_nlpd[4] == "not finite"
    assert svgp_mse[1] == "svgp" and svgp_mse[6] == "no, worse"


def test_signs_that_are_in_doubt_are_marked() -> None:
    text, verdict = vish_table.paper_verdict("power", "vish", "nlpd", 0.06)
    assert text == "-0.005 ± 0.03 (sign?)"
    assert verdict == "undecided, worse; other sign: yes"
    assert "sign" not in vish_table.paper_verdict("power", "vish", "mse", 0.05)[0]


def test_tables_of_timings_show_the_targets() -> None:
    seconds = {"median": 1.0, "lower": 0.9, "upper": 1.1}
    run = {"max_degree": 5, "q": "full", "whiten": True, "rows": 1024, "rounds": 3, "seed": 0}
    result = {
        "num_inducing": 1782,
        "seconds": dict.fromkeys(("points", "harmonics", "bare"), seconds),
        "ratios": {"points/harmonics": {**seconds, "median": 6.0}, "harmonics/bare": seconds},
        "peak_bytes": {"points": 2e8, "harmonics": 1e8, "bare": 5e7},
    }
    (row,) = rows_of(structure.table_of([{"configuration": run, "result": result}]))
    assert row[0] == "1782" and row[8] == ">= 5x: met; bare <= 1.5x: met"

    run = {"measure": "forward", "dimension": 9, "max_degree": 4, "rows": 10_000, "rounds": 3}
    result = {
        "seconds": dict.fromkeys(basis.SIDES["forward"], seconds),
        "ratios": {"peer numpy": seconds, "peer tf": seconds},
        "peak_bytes": dict.fromkeys(basis.SIDES["forward"], 1e6),
    }
    wrong = {"measure": "error", "dimension": 3, "max_degree": 33, "dtype": "float64"}
    errors = {"errors": {"ours": 1e-14, "peer numpy": 1e-13, "peer tf": None}}
    rows = rows_of(
        basis.table_of(
            [
                {"configuration": run, "result": result},
                {"configuration": wrong, "result": errors},
            ]
        )
    )
    assert rows[0][-1] == ">= 7x: NOT met"
    assert rows_of(basis.table_of([{"configuration": wrong, "result": errors}]))[-1][-1] == (
        "not finite"
    )
