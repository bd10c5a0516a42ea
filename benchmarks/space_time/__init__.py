"""The benchmark of data in space and time."""
