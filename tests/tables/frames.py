"""A data frame without pandas."""

from typing import Any


class Frame(dict[Any, Any]):
    """A minimal data frame: columns by name, each with its own type."""

    columns = property(lambda self: list(self))
