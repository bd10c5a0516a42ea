"""``VecchiaSGPR``: regression on rows that are whitened by their nearest rows.

The package has the model, its local kernel, the search of neighbours, predictions, and training.
Features of any family, the sums and the bound come from the other packages.
"""

__all__: list[str] = []
