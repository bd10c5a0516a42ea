"""Types of NumPy arrays."""

from typing import Any

import numpy as np

from .._arguments import Array as Array

ComplexArray = np.ndarray[Any, np.dtype[np.complex128]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
