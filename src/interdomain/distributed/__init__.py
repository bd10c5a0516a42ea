"""Communication between the worker processes of a ``tf.distribute`` strategy.

:func:`interdomain.training.fit` and :class:`interdomain.models.StructuredSGPR` use this package
when they are given a ``strategy``. For several devices of one process, see
:mod:`interdomain.devices`.
"""

from .workers import WorkerLostError, Workers

__all__ = ["WorkerLostError", "Workers"]
