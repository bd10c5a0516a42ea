"""Maps, and what the reports of diagnostics draw with.

They need matplotlib (the extra ``plot``), which is imported only when a function is called; without
it they raise ImportError. Functions return the axes that they have drawn in.
"""

from .maps import globe

__all__ = ["globe"]
