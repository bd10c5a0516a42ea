"""Which model suits some data: races of them on one clock, and the winner.

An annex: imported on demand, it uses the library by its public names alone.
"""

from .race import race
from .recommend import recommend

__all__ = ["race", "recommend"]
