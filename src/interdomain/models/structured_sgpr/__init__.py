"""``StructuredSGPR``: the model and its training."""

__all__: list[str] = []
