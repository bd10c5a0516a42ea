"""Files of statistics that cannot be right, and places where none can be written."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interdomain as idm
from interdomain.streaming import Shards, SufficientStatistics

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]
Arrays = dict[str, np.ndarray]


def with_header(arrays: Arrays, key: str = "header", **changes: Any) -> Arrays:
    """With other values in a mapping; None takes one away."""
    values = json.loads(str(arrays[key])) | changes
    kept = {name: value for name, value in values.items() if value is not None}
    return {key: np.array(json.dumps(kept))}


def test_what_cannot_be_sums_is_refused_by_its_key(
    rows: Rows, make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    path = tmp_path / "pass.npz"
    _ = make_model(rows, checkpoint_path=path).statistics
    good = dict(np.load(path))
    gram, spoilt, asymmetric = good["gram"], good["gram"].copy(), good["gram"].copy()
    spoilt[1, 2, 3], asymmetric[0, 0, 2] = np.inf, 0.0
    cases: list[tuple[str, dict[str, Any]]] = [
        ("'gram': it has NaN or infinite", {"gram": gram * np.nan}),
        ("'gram': it has NaN or infinite", {"gram": spoilt}),
        ("'gram': these cannot be sums of products", {"gram": -gram}),
        ("'gram': it is not symmetric", {"gram": asymmetric}),
        ("'gram': found shape", {"gram": gram[:, :5]}),
        ("'gram': found shape", {"gram": gram[0]}),
        ("'gram': found type", {"gram": gram.astype("U5")}),
        ("'diagonal': these cannot be sums of variances", {"diagonal": -good["diagonal"]}),
        ("'diagonal': it has NaN", {"diagonal": np.nan * good["diagonal"]}),
        ("'diagonal': found shape", {"diagonal": good["diagonal"][:, :0]}),
        ("'probes': found shape", {"probes": good["probes"][0]}),
        ("'stacked': found shape", {"stacked": good["stacked"][:, :2]}),
        ("'terms': found shape", {"terms": good["terms"][:0]}),
        ("'parameter_0': it has NaN", {"parameter_0": good["parameter_0"] * np.nan}),
        ("'header': it is no mapping", {"header": np.array('{"format": 1')}),
        ("'position': it is no mapping", {"position": np.array("3")}),
    ]
    for key in ("gram", "diagonal", "probes", "stacked", "terms", "parameter_0", "parameter_1"):
        cases.append((f"'{key}': it is missing", {key: None}))
    for name, value, found in (
        ("num_rows", -211, "found -211"),
        ("num_rows", 210, "found 210, and the sums in 'gram' are of 211 rows"),
        ("num_rows", 211.5, "found 211.5"),
        ("num_rows", None, "it is missing"),
        ("num_skipped", -1, "found -1"),
        ("num_outputs", "1", "found '1'"),
        ("mean", 3, "found 3"),
        ("parameters", None, "it is missing"),
    ):
        cases.append((rf"header\['{name}'\]: {found}", with_header(good, **{name: value})))
    for name, value, found in (
        ("batch", -1, "found -1"),
        ("complete", 1, "found 1"),
        ("checksum", None, "it is missing"),
    ):
        changed = with_header(good, "position", **{name: value})
        cases.append((rf"position\['{name}'\]: {found}", changed))
    for message, changes in cases:
        crafted = {k: v for k, v in {**good, **changes}.items() if v is not None}
        with path.open("wb") as file:
            np.savez(file, **crafted)
        if "no mapping" in message and "header" in message:
            message = "holds no sufficient statistics"  # not even that can be told
        with pytest.raises(ValueError, match=f"path: {path} .*{message}"):
            SufficientStatistics.load(path)
    lying = with_header(good, "position", rows=300)
    for message, changes in (
        ("it is damaged: 'gram': these cannot be sums", {"gram": -gram}),
        ("it is damaged: 'position': found 300 rows, and sums of 211 beside 0", lying),
    ):
        np.savez(path, **{**good, **changes})  # a pass reads it by the same functions
        with pytest.raises(ValueError, match=f"checkpoint_path: {path} .*{message}"):
            make_model(rows, checkpoint_path=path).elbo()
    np.savez(path, **good)
    np.testing.assert_array_equal(
        SufficientStatistics.load(path).gram.value, whole.statistics.gram.value
    )


def test_other_columns_than_the_models(
    make_model: Make, whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    path = tmp_path / "saved.npz"
    whole.statistics.save(path)
    arrays = dict(np.load(path))
    np.savez(path, **(arrays | {"probes": arrays["probes"][:, :1]}))
    with pytest.raises(ValueError, match=r"data: .* 1 columns of X \('probes'\)"):
        make_model(SufficientStatistics.load(path)).elbo()


def test_statistics_of_what_was_left_can_be_saved(
    rows: Rows, make_model: Make, tmp_path: Path
) -> None:
    """Rounding leaves traces of rows that were taken away: also where no row is left."""
    X, Y = rows
    model = make_model((X, 1e3 * Y))
    for part in (slice(0, 210), slice(210, None)):
        model.remove((X[part], 1e3 * Y[part]))
        model.statistics.save(tmp_path / "rest.npz")
        loaded = SufficientStatistics.load(tmp_path / "rest.npz")
        assert loaded.num_rows == 211 - (part.stop or 211)


def test_places_where_no_file_can_be(rows: Rows, make_model: Make, tmp_path: Path) -> None:
    """Found before any row is read."""
    plain = tmp_path / "plain"
    plain.write_text("mine")

    class Unread:
        shape = (10, 2)

        def __getitem__(self, rows: slice) -> np.ndarray:
            raise AssertionError("it was read")

    data = Unread(), np.zeros((10, 1))
    for path, message in (
        (plain / "pass.npz", f"checkpoint_path: {plain} is, or lies in, a file"),
        (tmp_path, f"checkpoint_path: {tmp_path} is a folder; .* pass the path of a file"),
    ):
        with pytest.raises(ValueError, match=message):
            make_model(data, checkpoint_path=path).elbo()
    with pytest.raises(ValueError, match=f"checkpoint_path: {plain} is, or lies in, a file"):
        make_model(Shards({"a": data}), checkpoint_path=plain).elbo()
    assert plain.read_text() == "mine"
    # A folder that is not there is made.
    make_model(rows, checkpoint_path=tmp_path / "new" / "pass.npz").elbo()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["pass.npz"]


def test_a_full_disk_leaves_what_was_there(
    rows: Rows,
    make_model: Make,
    whole: idm.models.StructuredSGPR,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "pass.npz"
    monkeypatch.setattr("interdomain.streaming.pass_files.SECONDS_BETWEEN", 0.0)
    written = iter(range(100))
    fsync = os.fsync

    def full(file: int) -> None:
        if next(written) >= 2:  # after the trial and the first 80 rows
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            OSError, match=f"{path}: the sums of the first 160 rows .*No space left"
        ):
            make_model(rows, checkpoint_path=path).elbo()
    assert [file.name for file in tmp_path.iterdir()] == ["pass.npz"]
    with pytest.raises(ValueError, match="a pass that ended after 80 rows"):
        SufficientStatistics.load(path)
    resumed = make_model(rows, checkpoint_path=path).statistics
    np.testing.assert_array_equal(resumed.gram.value, whole.statistics.gram.value)
