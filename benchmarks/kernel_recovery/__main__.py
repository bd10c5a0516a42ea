"""The command `python -m benchmarks.kernel_recovery`."""

import sys

from benchmarks.kernel_recovery.benchmark import KernelRecovery

if __name__ == "__main__":
    sys.exit(KernelRecovery().main())
