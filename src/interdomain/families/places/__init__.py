"""Values of f at the places of rows that repeat places, such as stations."""

__all__: list[str] = []
