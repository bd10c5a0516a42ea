"""A data frame without pandas."""

from typing import Any


class Frame(dict[Any, Any]):
    """What a data frame has: columns by name, each of a type of its own."""

    columns = property(lambda self: list(self))
