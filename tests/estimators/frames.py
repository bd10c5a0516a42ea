"""Frames, and programs that are run as they are printed."""

from __future__ import annotations

from typing import Any


class Frame(dict[Any, Any]):
    """A minimal data frame: columns by name, each with its own type."""

    columns = property(lambda self: list(self))


def printed(code: str, **names: Any) -> dict[str, Any]:
    """The variables of printed code after it has run, without the __future__ of this file."""
    exec(compile(code, "printed", "exec", dont_inherit=True), names)
    return names
