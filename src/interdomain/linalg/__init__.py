"""Linear algebra that several families share: pure TensorFlow, without GPflow.

* :mod:`~interdomain.linalg.chunks`: functions of many rows, computed a few rows at a time.
* :mod:`~interdomain.linalg.distances`: squared distances as one product of matrices.
* :mod:`~interdomain.linalg.radial_terms`, :mod:`~interdomain.linalg.radial_sums`: functions of a
  squared distance, and weighted sums of them over groups of points, with gradients in closed form.
"""

__all__: list[str] = []
