"""``StructuredSGPR``: the model, and how it is trained."""

__all__: list[str] = []
