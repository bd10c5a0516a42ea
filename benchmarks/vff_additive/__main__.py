"""The command `python -m benchmarks.vff_additive`."""

import sys

from benchmarks.vff_additive.benchmark import VffAdditive

if __name__ == "__main__":
    sys.exit(VffAdditive().main())
