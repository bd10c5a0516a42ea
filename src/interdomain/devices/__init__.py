"""Places the blocks of a model on several devices of one machine.

:class:`interdomain.models.AdditiveSVGP` uses this package when it is given ``devices``, and
:func:`report` shows which operations of a model run on which device. For several machines, see
:mod:`interdomain.distributed`.
"""

from .placement import (
    HEAVY_OPERATIONS,
    PlacementReport,
    graph_nodes,
    move_parameters,
    pinned,
    report,
    resolve_devices,
)

__all__ = [
    "HEAVY_OPERATIONS",
    "PlacementReport",
    "graph_nodes",
    "move_parameters",
    "pinned",
    "report",
    "resolve_devices",
]
