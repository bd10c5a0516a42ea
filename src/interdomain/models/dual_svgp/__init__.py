"""``DualSVGP``: the model, its sites, the passes over rows, and training.

A site is a Gaussian term in place of the likelihood of a row. The prior and all sites make q.
"""

__all__: list[str] = []
