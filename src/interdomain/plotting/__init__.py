"""Maps of the globe.

The functions need matplotlib (the extra ``plot``), which is imported only when a function is
called. Without matplotlib they raise ImportError. Functions return the axes of their drawing.
"""

from .maps import globe

__all__ = ["globe"]
