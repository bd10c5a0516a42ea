"""``VecchiaSGPR``: regression on rows that are whitened by their nearest rows.

The package has the model, its local kernel, the search of neighbours, predictions, and training. It
uses features only by the protocol of a family, and the sums and the bound of any regression.
"""

__all__: list[str] = []
