"""Which model suits some data: races of them on one clock, and the winner.

An annex: imported on demand, it takes kernels, features and models by their public names.
"""

from .race import race
from .recommend import recommend

__all__ = ["race", "recommend"]
