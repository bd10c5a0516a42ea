"""The sums over rows that a collapsed bound is computed from. Their size is independent of N."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._arguments import integer, short
from ..sphere._typing import Array
from .archives import FORMAT, header_of, read_archive, write_archive
from .compensated import CompensatedSum, could_be_left
from .identity import Identity, differing_parameter


@dataclass(frozen=True)
class SufficientStatistics:
    """Sums over rows of data, from which :class:`interdomain.models.StructuredSGPR` is computed.

    With features ``Kuf`` ``[M, N]`` and ``s_n = (Kuf[:, n], y_n, h_n)``, where h are the columns of
    the mean function (a one; for a linear mean x and a one), they hold the sum of ``s_n s_n^T`` and
    the sums of the terms of ``K(x_n, x_n)``, in float64 with compensated summation. Statistics of
    different rows can be added, and rows can be removed::

        model.statistics + model.accumulate((X_tuesday, Y_tuesday))
        SufficientStatistics.load("monday.npz") + SufficientStatistics.load("tuesday.npz")
        model.statistics - model.accumulate((X_withdrawn, Y_withdrawn))

    Statistics record the parameters that the features depend on, and the features' values at some
    rows, so that a model with other features raises an error.

    :ivar num_rows: The number N of rows.
    :ivar num_skipped: The number of rows left out because they had NaN or infinite numbers.
    :ivar seconds: The seconds that the passes took, by part: "read", "features", "products".
    """

    num_rows: int
    num_skipped: int
    gram: CompensatedSum
    diagonal: CompensatedSum
    identity: Identity
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """:raises ValueError: If a part is of another kind."""
        for name in ("num_rows", "num_skipped"):
            integer(name, getattr(self, name), at_least=0)
        kinds = {"gram": CompensatedSum, "diagonal": CompensatedSum, "identity": Identity}
        for name, kind in (kinds | {"seconds": Mapping}).items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise ValueError(
                    f"{name} must be a {kind.__name__}, found {short(value)}; statistics are made "
                    "by StructuredSGPR, and read by SufficientStatistics.load."
                )

    @property
    def num_outputs(self) -> int:
        """The number P of columns of Y."""
        return self.identity.num_outputs

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
        if isinstance(other, SufficientStatistics) and other.num_rows > self.num_rows:
            raise ValueError(
                f"other: found {other.num_rows} rows to take away from {self.num_rows}; pass the "
                "statistics of rows that are among these."
            )
        rest: SufficientStatistics = self._combined(other, -1)
        if not could_be_left(rest.gram.value, self.gram.value):
            raise ValueError(
                f"other: found {other.num_rows} rows that are not all among these {self.num_rows}: "
                "without them, sums of squares over the rows that are left would be negative; pass "
                "the statistics of rows that are among these."
            )
        return rest

    def _combined(self, other: Any, sign: int) -> Any:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        self._check_same_features(other)
        seconds = {
            part: self.seconds.get(part, 0.0) + other.seconds.get(part, 0.0)
            for part in {**self.seconds, **other.seconds}
        }
        return SufficientStatistics(
            num_rows=self.num_rows + sign * other.num_rows,
            num_skipped=max(0, self.num_skipped + sign * other.num_skipped),
            gram=self.gram.plus(other.gram, sign),
            diagonal=self.diagonal.plus(other.diagonal, sign),
            identity=self.identity.joined(other.identity) if sign > 0 else self.identity,
            seconds=seconds,
        )

    def _check_same_features(self, other: SufficientStatistics) -> None:
        ours, theirs = self.identity, other.identity
        shapes = (
            (self.gram.high.shape, ours.num_outputs, ours.mean, self.diagonal.high.shape),
            (other.gram.high.shape, theirs.num_outputs, theirs.mean, other.diagonal.high.shape),
        )
        if shapes[0] != shapes[1]:
            raise ValueError(
                "other: the statistics have different sizes (matrix, outputs, mean function, terms "
                f"of the diagonal): {shapes[0]} and {shapes[1]}; add only statistics of models "
                "with the same inducing variable, kernel, mean function and outputs."
            )
        difference = differing_parameter(ours.parameters, theirs.parameters)
        if difference is not None:
            raise ValueError(
                f"other: the statistics are of different features: {difference}; compute both with "
                "the same values of the parameters that the features depend on."
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to one file (NumPy's .npz, at exactly this path).

        An interrupted write leaves the previous file as it was.
        """
        write_archive(path, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SufficientStatistics:
        """Read what :meth:`save` wrote.

        :raises ValueError: If the file holds something else, or impossible sums (the message names
            the key in the file).
        """
        try:
            os.fspath(path)
        except TypeError:
            raise ValueError(f"path must be the path of a file, found {short(path)}.") from None
        arrays = read_archive(path)
        try:
            return cls.from_arrays(arrays)
        except ValueError as error:
            raise ValueError(
                f"path: {os.fspath(path)} is damaged, or not what SufficientStatistics.save wrote: "
                f"{error}; take the statistics again."
            ) from error

    def to_arrays(self) -> dict[str, Array]:
        """The statistics as named arrays."""
        header = {
            "format": FORMAT,
            "num_rows": self.num_rows,
            "num_skipped": self.num_skipped,
            "num_outputs": self.num_outputs,
            "mean": self.identity.mean,
            "seconds": dict(self.seconds),
            "parameters": list(self.identity.parameters),
        }
        parameters = enumerate(self.identity.parameters.values())
        return {
            "header": np.array(json.dumps(header)),
            "gram": np.stack([self.gram.high, self.gram.low]),
            "diagonal": np.stack([self.diagonal.high, self.diagonal.low]),
            "probes": self.identity.probes,
            "stacked": self.identity.stacked,
            "terms": self.identity.terms,
            **{f"parameter_{i}": np.asarray(value) for i, value in parameters},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SufficientStatistics:
        """The opposite of :meth:`to_arrays`.

        :raises ValueError: If an array is missing, or cannot be a sum over rows; the message begins
            with its key.
        """
        if not isinstance(arrays, Mapping):
            raise ValueError(
                f"arrays must be a mapping from names to arrays, found {short(arrays)}; pass what "
                "to_arrays returned."
            )
        header = header_of(arrays)
        names = header["parameters"]
        return cls(
            num_rows=header["num_rows"],
            num_skipped=header["num_skipped"],
            gram=CompensatedSum(*arrays["gram"]),
            diagonal=CompensatedSum(*arrays["diagonal"]),
            identity=Identity(
                parameters={name: arrays[f"parameter_{i}"] for i, name in enumerate(names)},
                mean=header["mean"],
                num_outputs=header["num_outputs"],
                probes=arrays["probes"],
                stacked=arrays["stacked"],
                terms=arrays["terms"],
            ),
            seconds=header["seconds"],
        )

    def sums(self) -> dict[str, Array]:
        """The sums over rows by name."""
        return {
            "gram": self.gram.value,
            "diagonal": self.diagonal.value,
            "rows": np.array([self.num_rows, self.num_skipped], np.float64),
        }

    def with_sums(self, sums: Mapping[str, Array]) -> SufficientStatistics:
        """Statistics of the same features with other :meth:`sums`."""
        num_rows, num_skipped = (int(number) for number in sums["rows"])
        return replace(
            self,
            num_rows=num_rows,
            num_skipped=num_skipped,
            gram=CompensatedSum(sums["gram"]),
            diagonal=CompensatedSum(sums["diagonal"]),
        )

    def checksum(self) -> int:
        """A number that is the same for statistics of the same features."""
        identity = self.identity
        parts = [*identity.parameters, *identity.parameters.values(), identity.mean]
        shapes = self.gram.high.shape, identity.num_outputs, self.diagonal.high.shape
        return zlib.crc32(b"".join(str(part).encode() for part in (*parts, shapes)))

    def __deepcopy__(self, memo: dict[int, Any]) -> SufficientStatistics:
        """The same object: statistics never change, and may be large."""
        return self
