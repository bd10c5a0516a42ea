"""Peak memory of one call, measured in its own process.

The child process builds data, model and traced graph, and makes the call once, so that thread pools
exist and the graph is optimised. It then gives freed memory back to the system and notes its
resident memory. It makes the call again, and reports by how much the peak exceeded that memory. The
kernel's high-water mark (`VmHWM`) is reset before the second call, so that an earlier peak does not
count. Only Linux has these figures.
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

# The child must return memory when it is freed; otherwise blocks of an earlier call serve a later
# one, and are not counted. TensorFlow pools freed blocks only with its oneDNN kernels; float64
# products use the same kernels either way. glibc returns large blocks at once if its threshold is
# fixed.
GIVE_BACK = {
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_MMAP_MAX_": "1000000",
}


def peak_bytes(factory: Callable[..., Callable[[], Any]], **arguments: Any) -> int:
    """The peak of bytes that the call `factory(**arguments)()` needs, in a fresh process.

    :param factory: a function at the top level of a module; `arguments` are JSON values.
    :raises RuntimeError: if the child process fails; the message ends with its output.
    """
    return int(
        from_child(_peak_of, environment=GIVE_BACK, target=target_of(factory), arguments=arguments)
    )


def peak_of_call(call: Callable[[], Any]) -> int:
    """The difference in bytes of the peak of resident memory during `call()` and just before it."""
    wait_for(call())
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # small blocks that glibc keeps
    if trim is not None:
        trim(0)
    CLEAR.write_text("5")
    before = _status_bytes("VmRSS")
    result = wait_for(call())
    peak = _status_bytes("VmHWM")
    del result
    return max(0, peak - before)


def peak_of_process() -> int:
    """The peak of resident bytes of this process. Pages of memory-mapped files count, although the
    system can free them at any time."""
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
