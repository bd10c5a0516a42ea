"""Files of statistics that cannot be right."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interdomain as idm
from interdomain.regression import SufficientStatistics

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
    spoilt[2, 3], asymmetric[0, 2] = np.inf, 0.0
    cases: list[tuple[str, dict[str, Any]]] = [
        ("'gram': it has NaN or infinite", {"gram": spoilt}),
        ("'gram': these cannot be sums of products", {"gram": -gram}),
        ("'gram': these cannot be sums of products", {"gram": asymmetric}),
        ("'gram': found shape", {"gram": gram[:5]}),
        ("'gram': it has .* or is of another type", {"gram": gram.astype("U5")}),
        ("'targets': found shape", {"targets": good["targets"][:, :1]}),
        ("'products': found shape", {"products": good["products"][:, :1]}),
        ("'diagonal': these cannot be sums of variances", {"diagonal": -good["diagonal"]}),
        ("'parameter_0' is missing", {"parameter_0": None}),
        ("'products' is missing", {"products": None}),
        ("'num_rows': found 210, and sums of 211 rows", with_header(good, num_rows=210)),
        ("'description' is missing", with_header(good, description=None)),
        ("is of version 1, and this library reads 2", with_header(good, version=1)),
        ("holds no sufficient statistics", {"header": np.array('{"version": 2')}),
    ]
    for message, changes in cases:
        np.savez(path, **{k: v for k, v in {**good, **changes}.items() if v is not None})
        with pytest.raises(ValueError, match=f"path: {path} .*{message}"):
            SufficientStatistics.load(path)
    path.write_bytes(path.read_bytes()[:-100])  # cut off
    with pytest.raises(ValueError, match=f"path: {path} holds no sufficient statistics"):
        SufficientStatistics.load(path)
    np.savez(path, **good)
    loaded = SufficientStatistics.load(path)
    np.testing.assert_array_equal(loaded.sums["gram"], whole.statistics.sums["gram"])


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
