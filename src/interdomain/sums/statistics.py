"""The sums over rows that a collapsed bound is computed from. Their size is independent of N."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from .._arguments import Array, short
from .._tracing import compiled
from .saved_sums import check_sums, replacing

_REFERENCE = "reference of Y"


@dataclass(frozen=True)
class SufficientStatistics:
    """Sums over rows of data, from which :class:`interdomain.models.StructuredSGPR` is computed.

    ``StructuredSGPR.statistics`` and ``StructuredSGPR.accumulate`` return them. Statistics of
    different rows can be added, and statistics of some of the rows can be subtracted::

        model.statistics + model.accumulate((X_tuesday, Y_tuesday))
        SufficientStatistics.load("monday.npz") + SufficientStatistics.load("tuesday.npz")
        model.statistics - model.accumulate((X_withdrawn, Y_withdrawn))

    Statistics contain a description of the features and the values of the parameters that the
    features depend on. A model with other features raises an error.

    :ivar num_rows: The number N of rows.
    :ivar sums: The sums by name, in float64; a row of weight w enters with the factor w. A row has
        features ``phi = Kuf[:, n]`` and targets ``t_n = (y_n, h_n)``, where h are the columns of
        the mean function (a one; for a linear mean x and a one). "gram" is the sum of ``phi phi^T``
        (for splines and groups, a vector of the nonzero numbers). "products" is for ``phi t^T``,
        "targets" for ``t t^T``, and "diagonal" for the terms of ``K(x_n, x_n)``. If rows have
        weights, "log_weights" is the sum of ``log w_n``; without it all weights are one.
    :ivar description: A description of the features.
    :ivar parameters: The values of the parameters that the features depend on, by name.
    :ivar reference: The level that the sums subtract from ``y_n``, ``[P]``: zero, or the mean of Y
        if it is far from zero, so that squares do not cancel.
    """

    num_rows: int
    sums: Mapping[str, Array]
    description: Mapping[str, Any]
    parameters: Mapping[str, Array]
    reference: Array = field(default_factory=lambda: np.zeros(1))

    @property
    def columns(self) -> tuple[int, int]:
        """The number of columns of X, and the number of columns of Y."""
        return self.description["columns of X"], self.description["columns of Y"]

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return "log_weights" in self.sums

    def __add__(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics of the rows of both.

        :raises ValueError: If the features differ.
        """
        total: SufficientStatistics = self._combined(other, 1)
        return total

    def __sub__(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics without the rows of ``other``, which must be among the rows of these
        statistics. Only the numbers of rows can be checked.

        :raises ValueError: If the features differ, or ``other`` has more rows.
        """
        rest: SufficientStatistics = self._combined(other, -1)
        if rest is not NotImplemented and rest.num_rows < 0:
            raise ValueError(
                f"other: found {other.num_rows} rows to take away from {self.num_rows}; pass the "
                "statistics of rows that are among these."
            )
        return rest

    def all_reduce(self, strategy: tf.distribute.Strategy) -> SufficientStatistics:
        """The sum of the statistics of all workers of a strategy, equal on each worker.

        Every worker computes the statistics of its own rows, with a model of the same features and
        parameter values, and calls this method. The sum is the statistics of all rows::

            statistics = StructuredSGPR(rows_of_this_worker, kernel, harmonics).statistics
            model = StructuredSGPR(statistics.all_reduce(strategy), kernel, harmonics)

        :param strategy: The strategy of all workers, such as a ``MultiWorkerMirroredStrategy``.
        :raises ValueError: If workers have statistics of different features.
        """
        key = self.checksum() % 2**20  # so that sums of squares are exact

        def replica_sums(*arrays: tf.Tensor) -> list[tf.Tensor]:
            context = tf.distribute.get_replica_context()
            return [context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(a)) for a in arrays]

        run = compiled(lambda *arrays: strategy.run(replica_sums, args=arrays))

        def reduced(*arrays: Any) -> list[Array]:
            tensors = run(*(tf.constant(array, tf.float64) for array in arrays))
            # Each replica of a worker has added the worker's sums.
            local = [strategy.experimental_local_results(tensor) for tensor in tensors]
            return [results[0].numpy() / len(results) for results in local]

        (rows,) = reduced(np.array([self.num_rows, self.is_weighted, 1, key, key**2]))
        num_rows, weighted, workers, *keys = rows.tolist()
        if keys != [workers * key, workers * key**2]:
            raise ValueError(
                "statistics: workers have statistics of different features; give all models the "
                "same features and values of their parameters."
            )
        (references,) = reduced(np.broadcast_to(self.reference, [self.columns[1]]))
        own = self._from(references / workers)
        sums = dict(own.sums)
        log_weights = sums.pop("log_weights", np.zeros([]))
        if weighted:  # on any worker
            sums["log_weights"] = log_weights
        named = dict(zip(sums, reduced(*sums.values()), strict=True))
        return replace(own, num_rows=int(num_rows), sums=named)

    def _from(self, reference: Array) -> SufficientStatistics:
        """The statistics of the same rows with another reference r'. ``(y - r', h)`` is a linear
        function of ``(y - r, h)``, because the last column of h is one."""
        transform = np.eye(self.sums["targets"].shape[-1])
        transform[-1, : self.columns[1]] += self.reference - reference
        sums = dict(self.sums)
        if np.any(self.reference != reference):
            sums["products"] = sums["products"] @ transform
            sums["targets"] = transform.T @ sums["targets"] @ transform
        return replace(self, sums=sums, reference=reference)

    def _combined(self, other: Any, sign: int) -> Any:
        if not isinstance(other, SufficientStatistics):
            return NotImplemented
        difference = self.difference(other.description, other.parameters)
        if difference is not None:
            raise ValueError(
                f"other: the statistics are of different features: {difference}; compute both with "
                "the same features, and the same values of the parameters that these depend on."
            )
        sums, others, zero = dict(self.sums), other._from(self.reference).sums, np.zeros([])
        for name, array in others.items():  # one of the two may have no weights
            sums[name] = sums.get(name, zero) + sign * array
        return replace(self, num_rows=self.num_rows + sign * other.num_rows, sums=sums)

    def difference(
        self, description: Mapping[str, Any], parameters: Mapping[str, Array]
    ) -> str | None:
        """The first difference from a description and parameters, in words; None if they agree."""
        for name in {**self.description, **description}:
            was, now = (part.get(name, "not there") for part in (self.description, description))
            if was != now:
                return f"{name} is {short(was)} in one and {short(now)} in the other"
        return differing_parameter(self.parameters, parameters)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the statistics to one file (NumPy's .npz, at exactly this path).

        An interrupted write leaves the previous file as it was.

        :raises ValueError: If something other than a file is at the path.
        """
        header = {
            "num_rows": self.num_rows,
            "sums": list(self.sums),
            "description": dict(self.description),
            "parameters": list(self.parameters),
        }
        if np.any(self.reference):  # earlier versions refuse a description that they lack
            reference = np.broadcast_to(self.reference, [self.columns[1]])
            header["description"] = {**self.description, _REFERENCE: reference.tolist()}
        values = {f"parameter_{k}": value for k, value in enumerate(self.parameters.values())}
        with replacing(path) as file:
            np.savez(file, header=np.array(json.dumps(header)), **self.sums, **values)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SufficientStatistics:
        """Read statistics from a file that :meth:`save` wrote.

        :raises ValueError: If the file has other contents, is damaged (it has checksums of its
            arrays), or has numbers that cannot be sums over rows; the message names the file.
        """
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(str(arrays["header"]))
            description, names = header["description"], header["parameters"]
            num_outputs = description["columns of Y"]
            reference = description.pop(_REFERENCE, [0.0] * num_outputs)
            parts = {
                "num_rows": header["num_rows"],
                "sums": {key: arrays[key] for key in header["sums"]},
                "description": description,
                "parameters": {key: arrays[f"parameter_{k}"] for k, key in enumerate(names)},
                "reference": np.array(reference, np.float64),
            }
            check_sums(**parts)
            return cls(**parts)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ValueError(
                f"path: {path} holds no sufficient statistics that can be read "
                f"({type(error).__name__}: {error}); pass a file that SufficientStatistics.save "
                "has written, or take the statistics again."
            ) from error

    def checksum(self) -> int:
        """A checksum of the features' description and parameters."""
        values = b"".join(np.asarray(value).tobytes() for value in self.parameters.values())
        return zlib.crc32(
            json.dumps([*self.description.items(), *self.parameters]).encode() + values
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> SufficientStatistics:
        """This object itself: statistics never change, and may be large."""
        return self


def differing_parameter(some: Mapping[str, Array], others: Mapping[str, Array]) -> str | None:
    """A description of the first parameter that differs; None if all are the same.

    Differences as small as the rounding of a transform and its inverse are ignored.
    """
    tolerance = 64 * float(np.finfo(gpflow.default_float()).eps)
    for name in sorted({*some, *others}):
        if name not in some or name not in others:
            return f"{name} is among the parameters of one only"
        a, b = np.asarray(some[name]), np.asarray(others[name])
        if a.shape != b.shape:
            return f"{name} has shape {a.shape} in one and {b.shape} in the other"
        if not np.allclose(a, b, rtol=tolerance, atol=0.0):
            where = tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(a - b)), a.shape))
            text = f"{name} is {a[where]:.17g} in one and {b[where]:.17g} in the other"
            return f"{text} at {list(where)}" if where else text
    return None
