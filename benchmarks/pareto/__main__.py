"""The command `python -m benchmarks.pareto`."""

import sys

from benchmarks.pareto.benchmark import Pareto

if __name__ == "__main__":
    sys.exit(Pareto().main())
