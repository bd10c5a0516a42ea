"""The command `python -m benchmarks.startup`."""

import sys

from benchmarks.startup.benchmark import Startup

if __name__ == "__main__":
    sys.exit(Startup().main())
