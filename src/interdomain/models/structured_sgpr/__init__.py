"""``StructuredSGPR``: the model, and how it is trained."""
