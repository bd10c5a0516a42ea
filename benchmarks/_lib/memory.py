"""Peak memory of one call, measured in a process of its own.

The child process builds the work (data, model, traced graph) and makes the call once, so that
thread pools and graph optimisation are behind it. It then gives freed memory back to the system,
notes its resident memory, makes the call again, and reports by how much the peak exceeded that. The
kernel's high-water mark (`VmHWM`) is reset just before, so that nothing earlier can hide the peak.
Only Linux has these figures.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._lib.child import from_child, function_named, target_of
from benchmarks._lib.timing import wait_for

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")

# The child must give memory back when it is freed, or what an earlier call freed would serve a
# later one unseen. TensorFlow keeps freed blocks in a pool of its own with its oneDNN kernels and
# not without them (float64 products are the same kernels either way); glibc returns large blocks at
# once when its threshold is fixed.
GIVE_BACK = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_MMAP_MAX_": "1000000",
}


def peak_bytes(factory: Callable[..., Callable[[], Any]], **arguments: Any) -> int:
    """Bytes that the call `factory(**arguments)()` needs at its peak, in a fresh process.

    :param factory: a function at the top level of a module; `arguments` are JSON values.
    :raises RuntimeError: when the child process fails; the message ends with its output.
    """
    return int(
        from_child(_peak_of, environment=GIVE_BACK, target=target_of(factory), arguments=arguments)
    )


def peak_of_call(call: Callable[[], Any]) -> int:
    """Bytes by which the peak of resident memory during `call()` exceeds that before it."""
    wait_for(call())
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc: small blocks that it keeps
    if trim is not None:
        trim(0)
    CLEAR.write_text("5")
    before = _status_bytes("VmRSS")
    result = wait_for(call())
    peak = _status_bytes("VmHWM")
    del result
    return max(0, peak - before)


def peak_of_process() -> int:
    """The most bytes that have been resident in this process. Pages of memory-mapped files count,
    although the system can free them at any time."""
    return _status_bytes("VmHWM")


def resident_bytes() -> int:
    """The bytes that are resident in this process now."""
    return _status_bytes("VmRSS")


def _status_bytes(field: str) -> int:
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"this system reports no {field}")


def _peak_of(target: str, arguments: dict[str, Any]) -> int:
    return peak_of_call(function_named(target)(**arguments))
