"""``DualSVGP``: Gaussian sites that stand for the likelihood of each row, and the q that they make.

The model, its sites, the passes over rows, and training.
"""

__all__: list[str] = []
