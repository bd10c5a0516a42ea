"""The command `python -m benchmarks.referees`."""

import sys

from benchmarks.referees.benchmark import Referees

if __name__ == "__main__":
    sys.exit(Referees().main())
