"""The loader of data sets for every benchmark.

With `--data-dir`, a data set is the file `<data-dir>/<file>.npz`. Without it, scikit-learn's
`fetch_openml` fetches tables, and `tf.keras.datasets` fetches images. Any other data set raises an
error that names `--data-dir` and the file.

Layout of the `.npz` files:
tables     `X` [N, D], `Y` [N, P]; optionally `train_idx` [S, n], `test_idx` [S, m] (row numbers of
           S splits), or `fold` [N] (row i is a test row of split `fold[i]`).
images     `X_train`, `Y_train`, `X_test`, `Y_test`; pixels 0 to 255.
house_exact  `xy_<part>` [N, 2] (metres), `y_<part>` [N] (log prices), `covs_<part>` [N, 10].
           The parts are train, inter (places among train) and extra (places outside of train).
           Predictions of y by an exact GP: `exact_mean_<part>`, `exact_var_<part>` and
           `exact_params_noise_var_range`. Without covariates the mean of y_train is subtracted;
           names with `_with_covs` have a linear mean (places divided by 1e4). From
           github.com/Filippo-Rambelli/accuracy_runtime_scalable_GP_approx, `data/house_*.csv` and
           `saved_values_exactGP`.
others     arrays by name: see `load_arrays`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DataError(ValueError):
    """A data set is not available, or its shape is wrong; the message names the remedy."""


# Tables on OpenML: the shape that the table must have, and the arguments of fetch_openml.
OPENML_TABLES: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "yacht": ((308, 6), {"name": "yacht_hydrodynamics", "version": 1}),
    "energy": ((768, 8), {"data_id": 44960}),
    "concrete": ((1030, 8), {"data_id": 44959}),
    "kin8nm": ((8192, 8), {"data_id": 189}),
    "protein": ((45730, 9), {"data_id": 44963}),
}
TARGETS = {"energy": "heating_load", "kin8nm": "y", "protein": "RMSD"}  # default: the last column
DROPPED = ("cooling_load",)  # the second target of `energy`, which is no input

KERAS_IMAGES = ("mnist", "cifar10")

# File names, without ".npz", that differ from the names of the data sets.
FILES = {
    **{
        name: f"uci_{name}"
        for name in ("yacht", "energy", "concrete", "kin8nm", "power", "protein", "keggdirected")
    },
    "cifar10": "cifar10_jpeg_subset",
    "tetouan": "vif_power_tetouan",
    "precipitation": "vif_precipitation",
    "magic": "vif_magic",
}


@dataclass(frozen=True)
class Table:
    """A regression table in its original units, and the splits stored with it, if any."""

    name: str
    X: Array  # [N, D]
    Y: Array  # [N, P]
    splits: tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...] = ()  # (train, test) rows


@dataclass(frozen=True)
class Images:
    """Labelled images; pixels 0 to 255, labels are integers."""

    name: str
    X_train: NDArray[np.uint8]  # [N, H, W] or [N, H, W, C]
    Y_train: NDArray[np.int64]  # [N]
    X_test: NDArray[np.uint8]
    Y_test: NDArray[np.int64]


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Give a benchmark its `--data-dir` option."""
    parser.add_argument(
        "--data-dir",
        default=None,
        help="folder of .npz files (benchmarks/_lib/data.py states the layout); without it, data "
        "sets are fetched where scikit-learn or Keras can fetch them",
    )


def source_of(data_dir: str | None) -> str:
    """The origin of the data, "loaders" or "files", for the record; never the folder's name."""
    return "loaders" if data_dir is None else "files"


def for_a_process(
    configuration: Mapping[str, Any], arguments: argparse.Namespace
) -> dict[str, Any]:
    """A configuration as JSON values for a process: without `source`, which is only for the record,
    and with the folder `data_dir` of the data if there is such an option."""
    given = {name: value for name, value in configuration.items() if name != "source"}
    folder = {"data_dir": arguments.data_dir} if "data_dir" in arguments else {}
    return {**given, **folder}


def load_arrays(name: str, data_dir: str | Path | None) -> dict[str, NDArray[np.generic]]:
    """All arrays of the file that holds data set `name`.

    :raises DataError: without `data_dir`, or if the folder has no such file.
    """
    file = f"{FILES.get(name, name)}.npz"
    if data_dir is None:
        raise DataError(
            f"no library fetches the data set {name!r}: pass --data-dir, a folder that holds {file}"
        )
    path = Path(data_dir) / file
    if not path.is_file():
        raise DataError(f"--data-dir holds no {file}, which data set {name!r} needs")
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def load_table(name: str, data_dir: str | Path | None) -> Table:
    """A regression table, from `data_dir` if given, otherwise from OpenML.

    :raises DataError: if the table cannot be found, has the wrong shape, or is not finite.
    """
    if data_dir is None and name in OPENML_TABLES:
        return Table(name, *_fetch_openml_table(name))
    arrays = load_arrays(name, data_dir)
    X = np.asarray(arrays["X"], dtype=np.float64)
    Y = np.asarray(arrays["Y"], dtype=np.float64)
    if X.ndim != 2 or Y.ndim != 2 or len(X) != len(Y):
        raise DataError(
            f"data set {name!r} has X {X.shape} and Y {Y.shape}: expected [N, D] and [N, P]"
        )
    _check_finite(name, X, Y)
    return Table(name, X, Y, _stored_splits(arrays))


def load_images(name: str, data_dir: str | Path | None) -> Images:
    """Labelled images, from `data_dir` if given, otherwise from `tf.keras.datasets`.

    :raises DataError: if the images cannot be found.
    """
    if data_dir is None and name in KERAS_IMAGES:
        import tensorflow as tf

        train, test = getattr(tf.keras.datasets, name).load_data()
    else:
        arrays = load_arrays(name, data_dir)
        train, test = ((arrays[f"X_{part}"], arrays[f"Y_{part}"]) for part in ("train", "test"))
    labels = [np.asarray(part[1], dtype=np.int64).reshape(-1) for part in (train, test)]
    return Images(name, train[0], labels[0], test[0], labels[1])


def only_classes(images: Images, number: int) -> Images:
    """The images of the first `number` classes."""
    train, test = images.Y_train < number, images.Y_test < number
    parts = images.X_train[train], images.Y_train[train], images.X_test[test], images.Y_test[test]
    return Images(images.name, *parts)


def _stored_splits(
    arrays: dict[str, NDArray[np.generic]],
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
    if "train_idx" in arrays and "test_idx" in arrays:
        train_rows = np.asarray(arrays["train_idx"], dtype=np.int64)
        test_rows = np.asarray(arrays["test_idx"], dtype=np.int64)
        return tuple(zip(train_rows, test_rows, strict=True))
    if "fold" in arrays:
        fold = np.asarray(arrays["fold"])
        return tuple(
            (np.flatnonzero(fold != index), np.flatnonzero(fold == index))
            for index in range(int(fold.max()) + 1)
        )
    return ()


def _fetch_openml_table(name: str) -> tuple[Array, Array]:
    from sklearn.datasets import fetch_openml

    # With target_column=None every column is in `data`, the target too, whatever columns OpenML
    # declares as target or ignored.
    shape, table = OPENML_TABLES[name]
    bunch = fetch_openml(**table, target_column=None, as_frame=False, parser="liac-arff")
    columns = [str(column) for column in bunch.feature_names]
    target = TARGETS.get(name, columns[-1])
    inputs = [i for i, column in enumerate(columns) if column not in (target, *DROPPED)]
    values = np.asarray(bunch.data, dtype=np.float64)
    X, Y = values[:, inputs], values[:, [columns.index(target)]]
    if X.shape != shape:
        raise DataError(
            f"OpenML's table for {name!r} has {X.shape} rows and inputs, expected {shape}: "
            "it is not the table the papers use; pass --data-dir"
        )
    _check_finite(name, X, Y)
    return X, Y


def _check_finite(name: str, X: Array, Y: Array) -> None:
    bad = ~(np.isfinite(X).all(axis=1) & np.isfinite(Y).all(axis=1))
    if bad.any():
        raise DataError(
            f"data set {name!r} has {bad.sum()} rows that are not finite, the first is row "
            f"{np.flatnonzero(bad)[0]}: remove them from the file"
        )
