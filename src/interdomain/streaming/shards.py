"""Rows in named parts, which are divided among the workers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .._arguments import as_integer, short
from .sources import ArraySource


class Shards:
    """Rows of data in parts, such as files. Of W workers, worker w reads every W-th part, beginning
    with part w::

        Shards({path.stem: functools.partial(read, path) for path in sorted(folder.glob("*.npy"))})

    The sums of each part are computed, and saved, separately: see
    :class:`interdomain.models.StructuredSGPR`, ``checkpoint_path``.

    :param parts: A mapping from names to parts, in order. A part is data as
        :class:`interdomain.models.StructuredSGPR` takes them, or a function without arguments that
        returns them. The function is called when the part is read, and the data are dropped after
        that. All workers must be given the same parts.
    :raises ValueError: If there are no parts, or a name cannot be the name of a file.
    """

    def __init__(self, parts: Mapping[str, Any | Callable[[], Any]]) -> None:
        if not isinstance(parts, Mapping) or not parts:
            raise ValueError(
                f"parts: found {parts!r}; pass a mapping from names to data, or to functions that "
                "return them."
            )
        for name in parts:
            if not isinstance(name, str) or not name or name.startswith(".") or "/" in name:
                raise ValueError(
                    f"parts: {name!r} is no name for a part; pass one that a file could have, "
                    "such as '2019-07'."
                )
        self._parts = dict(parts)

    @classmethod
    def split(cls, data: tuple[Any, Any], number: int) -> Shards:
        """Divide arrays into ``number`` parts of consecutive rows and almost equal size.

        :param data: (X ``[N, D]``, Y ``[N, P]``), as arrays or memory-mapped arrays.
        :raises ValueError: If there are fewer rows than parts, or the data are not arrays.
        """
        if not isinstance(data, (tuple, list)) or len(data) != 2:
            raise ValueError(f"data must be a pair of arrays (X, Y), found {short(data)}.")
        X, Y = data
        num_rows = ArraySource(X, Y, 1).num_rows
        if as_integer(number) is None or not 1 <= number <= num_rows:
            raise ValueError(
                f"number: found {short(number)} for {num_rows} rows; pass a number from 1 to "
                f"{num_rows}."
            )
        ends = [num_rows * k // number for k in range(number + 1)]

        def rows(start: int, end: int) -> tuple[Any, Any]:
            return X[start:end], Y[start:end]

        return cls(
            {
                f"rows-{start}-{end - 1}": functools.partial(rows, start, end)
                for start, end in zip(ends[:-1], ends[1:], strict=True)
            }
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts, in order."""
        return tuple(self._parts)

    def of_worker(self, index: int, number: int) -> tuple[str, ...]:
        """The names of the parts that one worker of ``number`` reads."""
        return self.names[index::number]

    def open(self, name: str) -> Any:
        """The data of one part."""
        part = self._parts[name]
        return part() if callable(part) else part

    def __deepcopy__(self, memo: dict[int, Any]) -> Shards:
        """Rows are never changed, and may not fit into memory twice."""
        return self
