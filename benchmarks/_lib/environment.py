"""The machine and the versions of packages that a result was measured with."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "interdomain",
    "gpflow",
    "tensorflow",
    "tensorflow-probability",
    "numpy",
    "scipy",
    "gpytorch",
    "torch",
)


@functools.cache
def describe_environment() -> dict[str, Any]:
    """Versions, processor and commit; no path and no host name."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
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
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _commit() -> str | None:
    """The commit of this checkout, "+" added when source files differ from it."""
    folder = Path(__file__).parents[1]  # benchmarks/
    try:
        commit = _git(folder, "rev-parse", "--short=12", "HEAD").strip()
        changed = _git(folder, "status", "--porcelain", "--", "*.py", ":/src").strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=10
    ).stdout
