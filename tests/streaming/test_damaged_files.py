"""Files of statistics that cannot be right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interdomain as idm
from interdomain.streaming import SufficientStatistics

Rows = tuple[np.ndarray, np.ndarray]
Make = Callable[..., idm.models.StructuredSGPR]
Arrays = dict[str, np.ndarray]


def with_header(arrays: Arrays, key: str = "header", **changes: Any) -> Arrays:
    """With other values in a mapping; None takes one away."""
    values = json.loads(str(arrays[key])) | changes
    kept = {name: value for name, value in values.items() if value is not None}
    return {key: np.array(json.dumps(kept))}


def test_what_cannot_be_sums_is_refused_by_its_key(
    whole: idm.models.StructuredSGPR, tmp_path: Path
) -> None:
    path = tmp_path / "pass.npz"
    whole.statistics.save(path)
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
    for message, changes in cases:
        crafted = {k: v for k, v in {**good, **changes}.items() if v is not None}
        with path.open("wb") as file:
            np.savez(file, **crafted)
        if "no mapping" in message and "header" in message:
            message = "holds no sufficient statistics"  # not even that can be told
        with pytest.raises(ValueError, match=f"path: {path} .*{message}"):
            SufficientStatistics.load(path)
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
