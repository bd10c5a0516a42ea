"""Files of statistics: written completely or not at all, and checked when they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..sphere._typing import Array

FORMAT = 1
_SLACK = 1e-6
"""The tolerance for sums from which rows were removed, relative to the largest number."""


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write arrays to one file, which is replaced only once everything is written.

    :raises OSError: If the file cannot be written; the previous file, if any, is unchanged.
    """
    target = Path(path)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read_archive(path: str | os.PathLike[str]) -> dict[str, Array]:
    """Read what :func:`write_archive` wrote.

    :raises ValueError: If this library did not write the file.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = dict(archive)
        known = json.loads(str(arrays["header"]))["format"] == FORMAT
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(
            f"path: {os.fspath(path)} holds no sufficient statistics ({error}); pass a file that "
            "SufficientStatistics.save has written."
        ) from error
    if not known:
        raise ValueError(
            f"path: {os.fspath(path)} is of another format; write it again with this version."
        )
    return arrays


def header_of(arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The numbers and names of statistics, after a check that all arrays are there and could be
    sums over rows.

    :raises ValueError: If not; the message begins with the key.
    """
    wanted = {"num_rows": int, "num_skipped": int, "num_outputs": int, "mean": str}
    header = _mapping("header", _known(arrays, "header"), {**wanted, "parameters": list})
    _mapping("header['seconds']", header.get("seconds"), {})
    for number in range(len(header["parameters"])):
        _floats(arrays, f"parameter_{number}", None)
    probes = _floats(arrays, "probes", (None, None))
    stacked = _floats(arrays, "stacked", (None, len(probes)))
    # Where nothing is left out of the kernel there is no term, in neither of the two.
    no_terms = all(key in arrays and arrays[key].size == 0 for key in ("terms", "diagonal"))
    terms = _floats(arrays, "terms", (None, len(probes)), may_be_empty=no_terms)
    gram = _floats(arrays, "gram", (2, len(stacked), len(stacked))).sum(axis=0)
    diagonal = _floats(arrays, "diagonal", (2, len(terms)), may_be_empty=no_terms).sum(axis=0)
    _require(len(stacked) > header["num_outputs"], "stacked", f"found shape {stacked.shape}")
    squares = np.diagonal(gram)
    slack = _SLACK * max(1.0, np.max(np.abs(squares)))  # of the ones, if there is a row
    bounds = np.sqrt(np.outer(*[np.maximum(squares, 0.0)] * 2)) * (1 + _SLACK) + slack
    possible = np.all(squares >= -slack) and np.all(np.abs(gram) <= bounds)
    _require(possible, "gram", "these cannot be sums of products over rows")
    _require(np.allclose(gram, gram.T, rtol=0.0, atol=slack), "gram", "it is not symmetric")
    _require(
        np.all(diagonal >= -_SLACK * np.max(np.abs(diagonal), initial=0.0)),
        "diagonal",
        "these cannot be sums of variances over rows",
    )
    counted = squares[-1]  # the last column is a one for every row
    _require(
        abs(counted - header["num_rows"]) <= _SLACK * max(1.0, counted),
        "header['num_rows']",
        f"found {header['num_rows']}, and the sums in 'gram' are of {counted:.6g} rows",
    )
    return header


def _known(arrays: Mapping[str, Array], key: str) -> Array:
    _require(key in arrays, key, "it is missing")
    return arrays[key]


def _floats(
    arrays: Mapping[str, Array],
    key: str,
    shape: tuple[int | None, ...] | None,
    *,
    may_be_empty: bool = False,
) -> Array:
    found = _known(arrays, key)
    _require(found.dtype.kind == "f", key, f"found type {found.dtype}")
    if shape is not None:
        same = found.ndim == len(shape) and all(
            (size > 0 or may_be_empty) and wanted in (None, size)
            for size, wanted in zip(found.shape, shape, strict=True)
        )
        _require(same, key, f"found shape {found.shape}")
    _require(np.all(np.isfinite(found)), key, "it has NaN or infinite numbers")
    return found


def _mapping(key: str, text: Any, kinds: Mapping[str, type]) -> dict[str, Any]:
    """JSON (or what it was) with at least these values; integers are not negative."""
    try:
        found = json.loads(str(text)) if isinstance(text, np.ndarray) else text
    except ValueError:
        found = None
    _require(isinstance(found, dict), key, "it is no mapping in JSON")
    assert isinstance(found, dict)
    for name, kind in kinds.items():
        inner = f"{key}[{name!r}]"
        _require(name in found, inner, "it is missing")
        value: Any = found[name]
        right = type(value) is kind and not (isinstance(value, int) and value < 0)
        _require(right, inner, f"found {value!r}")
    return found


def _require(condition: Any, key: str, found: str) -> None:
    if not condition:
        raise ValueError(f"{key!r}: {found}" if "[" not in key else f"{key}: {found}")
