"""The machine and the package versions of a measurement."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "interdomain gpflow tensorflow tensorflow-probability numpy scipy finufft scikit-learn "
    "gpytorch torch gpboost"
).split()


@functools.cache
def describe_environment() -> dict[str, Any]:
    """Versions, processor and commit; no path and no host name."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "packages": versions,
        "commit": _commit(),
    }


def load_average() -> float | None:
    """The load average of the last minute; a timing is unreliable if it is well above 0."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _commit() -> str | None:
    """The commit of this checkout, with "+" if source files differ from it."""

    def git(*arguments: str) -> str:
        command, folder = ["git", *arguments], Path(__file__).parents[1]  # benchmarks/
        options: Any = {"check": True, "capture_output": True, "text": True, "timeout": 10}
        return str(subprocess.run(command, cwd=folder, **options).stdout).strip()

    try:
        changed = git("status", "--porcelain", "--", "*.py", ":/src")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None
