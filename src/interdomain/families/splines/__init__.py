"""B-splines of a box: features with compact support, for Matern kernels and products of them."""

__all__: list[str] = []
