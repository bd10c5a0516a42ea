"""Files of sums: written completely or not at all, and checked when they are read."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._arguments import Array, finite_array, integer

_FUNCTIONALS = "number of functionals"

_PERMISSIONS = 0o666
"""The permissions of new files, before the umask."""

_KINDS = {
    "a folder": stat.S_ISDIR,
    "a link to nothing": stat.S_ISLNK,
    "a pipe": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A new file, which replaces the file at the path if the block ends without an error.

    The new file is made in the same folder, under an unpredictable name, and never through a link.

    :raises ValueError: If something other than a file is at the path.
    """
    path = Path(path)
    if os.path.lexists(path):
        mode = (os.stat if path.exists() else os.lstat)(path).st_mode
        if not stat.S_ISREG(mode):
            kind = next((kind for kind, is_kind in _KINDS.items() if is_kind(mode)), "a device")
            raise ValueError(f"path must be that of a file, found {kind}, {path}; pass another.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, _PERMISSIONS)
    try:
        with open(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_sums(
    num_rows: Any,
    sums: Mapping[str, Array],
    description: Mapping[str, Any],
    parameters: Mapping[str, Array],
    reference: Array,
) -> None:
    """Check the contents of a file of sums: the attributes of :class:`.SufficientStatistics`.

    :raises ValueError: If the numbers cannot be sums over rows.
    """
    num_inputs, num_outputs = description["columns of X"], description["columns of Y"]
    size, terms = description["number of features"], description["terms of the diagonal"]
    is_linear, kinds = description["mean function"] == "linear", description.get(_FUNCTIONALS)
    acted = description.get("columns of the mean function")
    width = num_outputs + (acted or (num_inputs + 1 if is_linear else 1))
    shapes: dict[str, tuple[int, ...]] = {
        "products": (size, width),
        "targets": (width, width),
        "diagonal": (terms,),
        "reference": (num_outputs,),
        "log_weights": (),
    }
    are_whitened = "log_variances" in sums  # and then their kernel is of finite rank
    if are_whitened:
        shapes |= {"log_variances": (), "diagonal": (0,)}
    if np.ndim(sums["gram"]) - (kinds is not None) != 1:  # for splines and groups it is a vector
        shapes["gram"] = size, size
    if kinds is not None:  # the sums of each functional are kept apart
        by_kind = {name: (kinds, *shape) for name, shape in shapes.items() if name != "reference"}
        shapes |= by_kind | {"rows": (kinds,)}
    integer("num_rows", num_rows, at_least=0)
    for name, array in {**parameters, **sums, "reference": reference}.items():
        finite_array(name, array, (np.ndim(array),), "an array")
        if name in sums.keys() - {"gram"} - shapes.keys():
            raise ValueError(f"sums must be {', '.join(sorted(shapes))}, found {name}.")
        if shapes.get(name, np.shape(array)) != np.shape(array):
            raise ValueError(f"{name} must have shape {shapes[name]}, found {np.shape(array)}.")
    counted = float(np.sum(sums["rows"]) if kinds else sums["targets"][-1, -1])
    is_number = not are_whitened and ("log_weights" not in sums and acted is None or bool(kinds))
    if is_number and not np.isclose(counted, num_rows, rtol=1e-6, atol=0.1):
        raise ValueError(f"num_rows must be {counted:.10g}, as the sums say, found {num_rows}.")
