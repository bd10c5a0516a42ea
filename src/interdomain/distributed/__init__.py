"""The worker processes of a ``tf.distribute`` strategy, and what they send each other.

:func:`interdomain.training.fit` and :class:`interdomain.models.StructuredSGPR` use this package
where they are given a ``strategy``. For several devices of one process, see
:mod:`interdomain.devices`.
"""

from .workers import WorkerLostError, Workers

__all__ = ["WorkerLostError", "Workers"]
