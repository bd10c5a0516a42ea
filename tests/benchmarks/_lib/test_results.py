"""Records on disk, and runs that resume from them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks._lib.data import DataError
from benchmarks._lib.results import Record, ResultFile, configuration_key
from benchmarks._lib.runner import Benchmark, Configuration, indices


def record(number: float, **configuration: Any) -> Record:
    return {"configuration": configuration, "result": {"number": number}}


class Squares(Benchmark):
    """Squares of a few numbers."""

    name = "squares"

    def __init__(self) -> None:
        self.ran: list[int] = []
        self.failing: set[int] = set()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--numbers", type=indices, default=[1, 2, 3])

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        return [{"number": number} for number in arguments.numbers]

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        number = configuration["number"]
        if number in self.failing:
            raise DataError(f"no data for {number}")
        self.ran.append(number)
        return {"square": number**2}

    def table(self, records: Sequence[Record]) -> str:
        return ", ".join(str(record["result"]["square"]) for record in records)


def numbers(file: ResultFile) -> list[float]:
    return [one["result"]["number"] for one in file.records()]


def test_newest_record_counts_and_order_stays(tmp_path: Path) -> None:
    assert configuration_key({"a": 1, "b": "x"}) == configuration_key({"b": "x", "a": 1})
    file = ResultFile(tmp_path / "new folder" / "results.jsonl")
    assert file.records() == []
    for number, split in [(1.0, 0), (2.0, 1), (3.0, 0)]:
        file.append(record(number, split=split))
    assert numbers(file) == [3.0, 2.0]


def test_broken_lines(tmp_path: Path) -> None:
    """A last one that was not finished is mended, or kept where only its end is missing; one in the
    middle is an error."""
    file = ResultFile(tmp_path / "results.jsonl")
    for torn in (b'{"configuration": {"spl', b"\xff\xfe"):
        file.path.unlink(missing_ok=True)
        file.append(record(1.0, split=0))
        with file.path.open("ab") as stream:
            stream.write(torn)
        assert numbers(file) == [1.0]
        file.append(record(2.0, split=1))
        assert numbers(file) == [1.0, 2.0]
    file.path.write_bytes(file.path.read_bytes().rstrip(b"\n"))
    file.append(record(3.0, split=2))
    assert numbers(file) == [1.0, 2.0, 3.0]
    file.path.write_text('{"broken\n{"configuration": {}}\n')
    with pytest.raises(ValueError, match=r"line 1 of results\.jsonl is not a record"):
        file.records()


def test_resume_skips_what_is_finished(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = Squares()
    options = ["--results", str(tmp_path)]
    assert benchmark.main([*options, "--numbers", "1-2"]) == 0
    assert benchmark.main(options) == 0
    assert benchmark.ran == [1, 2, 3]
    assert benchmark.main([*options, "--numbers", "2", "--rerun"]) == 0
    assert benchmark.ran == [1, 2, 3, 2]
    capsys.readouterr()
    assert benchmark.main([*options, "--table"]) == 0
    assert capsys.readouterr().out == "1, 4, 9\n"
    assert benchmark.ran == [1, 2, 3, 2]


def test_a_failure_is_reported_and_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = Squares()
    benchmark.failing = {2}
    options = ["--results", str(tmp_path)]
    assert benchmark.main(options) == 1
    assert benchmark.ran == [1, 3]
    assert "no data for 2" in capsys.readouterr().err
    benchmark.failing = set()
    assert benchmark.main(options) == 0
    assert benchmark.ran == [1, 3, 2]


def test_short_results_stay_out_of_the_stored_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks._lib.runner.RESULTS_FOLDER", tmp_path)
    Squares().main(["--short"])
    assert (tmp_path / "short" / "squares.jsonl").exists()
    assert not (tmp_path / "squares.jsonl").exists()
