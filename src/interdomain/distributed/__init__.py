"""Communication between the worker processes of a ``tf.distribute`` strategy.

:func:`all_reduce` adds the statistics of all workers; :func:`interdomain.training.fit` uses this
package when it is given a ``strategy``. For several devices of one process, see
:mod:`interdomain.devices`.
"""

from .all_reduce import all_reduce
from .workers import WorkerLostError, Workers

__all__ = ["WorkerLostError", "Workers", "all_reduce"]
