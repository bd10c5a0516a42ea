"""Cores, numbers of threads and addresses for processes that are measured side by side."""

from __future__ import annotations

import contextlib
import json
import os
import socket


def usable_cores() -> list[int]:
    """The cores that this process may use, by number."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def worker_variables(number: int) -> list[dict[str, str]]:
    """The environment of each worker of a cluster on 127.0.0.1, as TensorFlow reads it."""
    workers = [f"127.0.0.1:{port}" for port in free_ports(number)]
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            )
        }
        for index in range(number)
    ]


def free_ports(number: int) -> list[int]:
    """Different ports of 127.0.0.1 that are free now."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(number)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]
