"""The attack: what it draws, what it finds, and what it says where the bits are others."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks._lib.results import ResultFile
from benchmarks.attack_kills import benchmark as attack_kills
from benchmarks.attack_kills.cases import CASES, Case, digest, newest, passed


def given(*options: str) -> argparse.Namespace:
    return attack_kills.AttackKills()._parser().parse_args(options)


def record(case: str, kill: int, **result: Any) -> dict[str, Any]:
    found = {"ended": False, "kept": 7, "unfinished": False, "said": [], "same": True}
    return {
        "configuration": {"case": case, "seed": 3, "kill": kill},
        "result": {**found, **result},
    }


def test_every_case_is_killed_as_often_as_asked(capsys: pytest.CaptureFixture[str]) -> None:
    runs = list(attack_kills.AttackKills().configurations(given("--kills", "2", "--seed", "3")))
    assert [run["case"] for run in runs] == 2 * list(CASES)
    assert {(run["seed"], run["kill"]) for run in runs} == {(3, 0), (3, 1)}
    assert "seed 3" in capsys.readouterr().err
    assert len(list(attack_kills.AttackKills().configurations(given("--short")))) == 1


def test_the_table_names_what_ended_with_other_bits() -> None:
    records = [record("svgp", 0), record("svgp", 1, kept=12, unfinished=True, said=["damaged"])]
    records += [record("out_of_core", 0, ended=True), record("svgp", 2, kept=None)]
    text = attack_kills.table_of(records)
    assert "All ended with the same bits" in text
    cells = [cell.strip() for cell in text.splitlines()[2].strip("|").split("|")]
    assert cells == ["svgp", "3", "3", "1", "7 to 12", "1", "1", "3 of 3"]
    text = attack_kills.table_of([*records, record("svgp", 3, same=False)])
    assert "NOT the same: [{'case': 'svgp', 'seed': 3, 'kill': 3}]" in text


def test_what_is_kept_and_its_bits(tmp_path: Path) -> None:
    assert newest(tmp_path) is None
    for step in (9, 10):
        (tmp_path / f"step-{step}.index").touch()
    assert newest(tmp_path) == 10
    zeros, negative = np.zeros(3), -np.zeros(3)
    assert digest([zeros]) == digest([zeros.copy()]) != digest([negative])


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_pass_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer rows, and seconds enough to be killed in."""
    few = Case(passed, {"num_data": 150_000, "max_degree": 8})
    monkeypatch.setitem(attack_kills.CASES, "out_of_core", few)
    options = ("--cases", "out_of_core", "--kills", "1", "--results", str(tmp_path))
    benchmark = attack_kills.AttackKills()
    assert benchmark.main(options) == 0
    (found,) = ResultFile(tmp_path / "attack_kills.jsonl").records()
    assert found["result"]["same"] and not found["result"]["ended"]
