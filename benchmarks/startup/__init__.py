"""The benchmark of the seconds until the first training step, and until a second fit."""
