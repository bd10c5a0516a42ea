"""``VecchiaSGPR``: rows that are whitened by their nearest rows, and regression on these.

The model, its local kernel, the search of neighbours, predictions, and training. Features are known
by the protocol of a family alone, and the sums and the bound are those of any regression.
"""

__all__: list[str] = []
