"""Sums over the worker processes of a ``tf.distribute`` strategy.

:func:`all_reduce` adds the statistics of all workers. Training on several workers is
:func:`interdomain.training.fit` with a ``strategy``; for several devices of one process, see
:mod:`interdomain.devices`.
"""

from .all_reduce import all_reduce

__all__ = ["all_reduce"]
