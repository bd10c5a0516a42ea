"""Types of NumPy arrays."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
ComplexArray = np.ndarray[Any, np.dtype[np.complex128]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
