"""The command `python -m benchmarks.uci_orthogonal`."""

import sys

from benchmarks.uci_orthogonal.benchmark import UciOrthogonal

if __name__ == "__main__":
    sys.exit(UciOrthogonal().main())
