"""Frames, and programs that are run as they are printed."""

from __future__ import annotations

from typing import Any


class Frame(dict[Any, Any]):
    """What a data frame has: columns by name, each of a type of its own."""

    columns = property(lambda self: list(self))


def printed(code: str, **names: Any) -> dict[str, Any]:
    """What code leaves when it is run as it is printed, without the __future__ of this file."""
    exec(compile(code, "printed", "exec", dont_inherit=True), names)
    return names
