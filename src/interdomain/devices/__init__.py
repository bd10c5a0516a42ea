"""Where a model is computed: its blocks on devices, its data on the workers of a cluster."""

from .blocks import (
    HEAVY_OPERATIONS,
    PlacementReport,
    graph_nodes,
    move_parameters,
    pinned,
    report,
    resolve_devices,
)
from .workers import WorkerLostError, Workers

__all__ = [
    "HEAVY_OPERATIONS",
    "PlacementReport",
    "WorkerLostError",
    "Workers",
    "graph_nodes",
    "move_parameters",
    "pinned",
    "report",
    "resolve_devices",
]
