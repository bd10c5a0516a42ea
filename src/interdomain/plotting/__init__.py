"""Maps of the globe, and the axes for plots of the diagnostics.

The functions need matplotlib (the extra ``plot``), which is imported only when one is called.
Without matplotlib they raise ImportError. Functions return the axes in which they have drawn.
"""

from .maps import globe

__all__ = ["globe"]
