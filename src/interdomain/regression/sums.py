"""The sums over rows that a collapsed bound is computed from. Their size is independent of N."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, short
from .features import Features
from .rows import Rows

VERSION = 2
"""Of files of statistics."""


@dataclass(frozen=True)
class SufficientStatistics:
    """Sums over rows of data, from which :class:`interdomain.models.StructuredSGPR` is computed.

    They are made by ``StructuredSGPR.statistics`` and ``StructuredSGPR.accumulate``.
    Statistics of different rows can be added, and rows can be removed::

        model.statistics + model.accumulate((X_tuesday, Y_tuesday))
        SufficientStatistics.load("monday.npz") + SufficientStatistics.load("tuesday.npz")
        model.statistics - model.accumulate((X_withdrawn, Y_withdrawn))

    Statistics record what the features are and the values of the parameters that these depend on,
    so that a model with other features raises an error.

    :ivar num_rows: The number N of rows.
    :ivar num_skipped: The number of rows left out because they had NaN or infinite numbers.
    :ivar sums: The sums by name, in float64. With features ``phi = Kuf[:, n]`` and targets ``t_n =
        (y_n, h_n)``, where h are the columns of the mean function (a one; for a linear mean x and a
        one): "gram" of ``phi phi^T``, "products" of ``phi t^T``, "targets" of ``t t^T``, and
        "diagonal" of the terms of ``K(x_n, x_n)``.
    :ivar description: What the features are.
    :ivar parameters: The values of the parameters that the features depend on, by name.
    :ivar seconds: The seconds that the passes took, by part: "read" and "sums".
    :ivar largest: The largest sums of squares that there have been, before rows were taken away,
        ``[M + P + H]``: rounding is relative to these. None for the present ones.
    """

    num_rows: int
    num_skipped: int
    sums: Mapping[str, Array]
    description: Mapping[str, Any]
    parameters: Mapping[str, Array]
    seconds: Mapping[str, float] = field(default_factory=dict)
    largest: Array | None = None

    @property
    def columns(self) -> tuple[int, int]:
        """The numbers of columns of X and of Y."""
        return self.description["columns of X"], self.description["columns of Y"]

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics of the rows of both.

        :raises ValueError: If they are of different features.
        """
        total: SufficientStatistics = self._combined(other, 1)
        return total

    def __sub__(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics without the rows of ``other``, which must be among these rows.

        :raises ValueError: If they are of different features, if ``other`` has more rows, or if the
            difference cannot be a sum over rows: some rows of ``other`` are not among these.
        """
        remedy = "pass the statistics of rows that are among these."
        if isinstance(other, SufficientStatistics) and other.num_rows > self.num_rows:
            raise ValueError(
                f"other: found {other.num_rows} rows to take away from {self.num_rows}; {remedy}"
            )
        rest: SufficientStatistics = self._combined(other, -1)
        if not _could_be_left(rest.sums, np.asarray(rest.largest)):
            raise ValueError(
                f"other: found {other.num_rows} rows that are not all among these {self.num_rows}: "
                "without them, sums of squares over the rows that are left would be negative; "
                f"{remedy}"
            )
        return rest

    def _combined(self, other: Any, sign: int) -> Any:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        difference = self.difference(other.description, other.parameters)
        if difference is not None:
            raise ValueError(
                f"other: the statistics are of different features: {difference}; compute both with "
                "the same features, and the same values of the parameters that these depend on."
            )
        known = [part.largest for part in (self, other) if part.largest is not None]
        known += [_squares(part.sums) for part in (self, other)]
        return replace(
            self,
            largest=np.max(known, axis=0),
            num_rows=self.num_rows + sign * other.num_rows,
            num_skipped=max(0, self.num_skipped + sign * other.num_skipped),
            sums={name: one + sign * other.sums[name] for name, one in self.sums.items()},
            seconds={
                part: self.seconds.get(part, 0.0) + other.seconds.get(part, 0.0)
                for part in {**self.seconds, **other.seconds}
            },
        )

    def difference(
        self, description: Mapping[str, Any], parameters: Mapping[str, Array]
    ) -> str | None:
        """What differs first between these features and others, in words; None if nothing does."""
        for name in {**self.description, **description}:
            was, now = (found.get(name, "not there") for found in (self.description, description))
            if was != now:
                return f"{name} is {short(was)} in one and {short(now)} in the other"
        return differing_parameter(self.parameters, parameters)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to one file (NumPy's .npz, at exactly this path).

        An interrupted write leaves the previous file as it was.
        """
        header = {
            "version": VERSION,
            "num_rows": self.num_rows,
            "num_skipped": self.num_skipped,
            "sums": list(self.sums),
            "description": dict(self.description),
            "parameters": list(self.parameters),
            "seconds": dict(self.seconds),
        }
        values = {f"parameter_{k}": value for k, value in enumerate(self.parameters.values())}
        if self.largest is not None:
            values["largest"] = self.largest
        target = Path(path)
        temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                np.savez(file, header=np.array(json.dumps(header)), **self.sums, **values)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SufficientStatistics:
        """Read what :meth:`save` wrote.

        :raises ValueError: If the file holds something else, or is damaged (it has checksums of its
            arrays); the message names the file.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(str(arrays["header"]))
            if header["version"] != VERSION:
                raise ValueError(
                    f"it is of version {header['version']}, and this library reads {VERSION}"
                )
            return cls(
                num_rows=header["num_rows"],
                num_skipped=header["num_skipped"],
                sums={key: arrays[key] for key in header["sums"]},
                description=header["description"],
                parameters={
                    key: arrays[f"parameter_{k}"] for k, key in enumerate(header["parameters"])
                },
                seconds=header["seconds"],
                largest=arrays.get("largest"),
            )
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(
                f"path: {path} holds no sufficient statistics that can be read "
                f"({type(error).__name__}: {error}); pass a file that SufficientStatistics.save "
                "has written, or take the statistics again."
            ) from error

    def checksum(self) -> int:
        """A number that is the same for statistics of the same features and parameters."""
        values = b"".join(np.asarray(value).tobytes() for value in self.parameters.values())
        return zlib.crc32(
            json.dumps([*self.description.items(), *self.parameters]).encode() + values
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> SufficientStatistics:
        """The same object: statistics never change, and may be large."""
        return self


def statistics_of(rows: Rows, features: Features) -> SufficientStatistics:
    """The statistics of rows, in one pass over them.

    It runs eagerly, also while the caller is traced, and with the caller's gradient tapes paused:
    they would keep every batch.

    :raises InvalidRowsError: See :meth:`Rows.batches`.
    :raises ValueError: If a feature of a row is not finite.
    """
    total: dict[str, Array] = {}
    seconds = {"read": 0.0, "sums": 0.0}
    num_rows, dtype = 0, gpflow.default_float()
    with tf.init_scope():
        start = time.perf_counter()
        for X, Y in rows.batches(features.boxes):
            read = time.perf_counter()
            seconds["read"] += read - start
            for name, tensor in features.sums(tf.constant(X, dtype), tf.constant(Y, dtype)).items():
                array = np.asarray(tensor)
                # Every number enters a square on the diagonal of a matrix.
                squares = np.diagonal(array) if name in ("gram", "targets") else array
                if not np.all(np.isfinite(squares)):
                    raise ValueError(
                        f"kernel: the features of finite rows, among rows {num_rows} to "
                        f"{num_rows + len(X) - 1}, are NaN, infinite, or too large for squares; "
                        "check the kernel's parameters and the scale of X."
                    )
                if name in total:
                    total[name] += array
                else:
                    total[name] = array.copy()
            num_rows += len(X)
            start = time.perf_counter()
            seconds["sums"] += start - read
        parameters = features.values()
    return SufficientStatistics(
        num_rows, rows.num_skipped, total, features.description(), parameters, seconds
    )


def differing_parameter(one: Mapping[str, Array], other: Mapping[str, Array]) -> str | None:
    """A description of the first parameter that differs; None if all are the same.

    Differences as small as the rounding of a transform and its inverse are ignored.
    """
    tolerance = 64 * float(np.finfo(gpflow.default_float()).eps)
    for name in sorted({*one, *other}):
        if name not in one or name not in other:
            return f"{name} is among the parameters of one only"
        a, b = np.asarray(one[name]), np.asarray(other[name])
        if a.shape != b.shape:
            return f"{name} has shape {a.shape} in one and {b.shape} in the other"
        if not np.allclose(a, b, rtol=tolerance, atol=0.0):
            where = tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(a - b)), a.shape))
            found = f"{name} is {a[where]:.17g} in one and {b[where]:.17g} in the other"
            return f"{found} at {list(where)}" if where else found
    return None


def _squares(sums: Mapping[str, Array]) -> Array:
    """The sums of squares of features and targets, ``[M + P + H]``."""
    return np.concatenate([np.diagonal(sums["gram"]), np.diagonal(sums["targets"])])


def _could_be_left(sums: Mapping[str, Array], squares: Array) -> bool:
    """Whether these could be sums over rows: whether those of products of features and targets,
    ``[M + P + H, M + P + H]``, are positive semi-definite but for rounding.

    A True is no proof: the result may be positive semi-definite by chance.

    :param squares: The sums of squares that rounding is relative to.
    """
    rest = np.block([[sums["gram"], sums["products"]], [sums["products"].T, sums["targets"]]])
    scale = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    scaled = rest / np.outer(scale, scale)
    tolerance = 64 * len(rest) * float(np.finfo(gpflow.default_float()).eps)
    return bool(np.all(np.isfinite(rest)) and np.linalg.eigvalsh(scaled)[0] >= -tolerance)
