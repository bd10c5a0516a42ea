"""What nearby rows know: the nearest rows of each, and regression on rows whitened by them.

They serve :class:`interdomain.models.VecchiaSGPR`. This folder stands on
:mod:`interdomain.regression`, whose sums and bound it uses on whitened rows, and knows features by
the protocol of a family alone.
"""

__all__: list[str] = []
