"""B-spline features of a box, with compact support, for Matern kernels and their products."""

__all__: list[str] = []
