"""Training steps under a strategy: on two devices, with two workers, and beyond by a cost model."""
