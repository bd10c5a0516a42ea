"""The command `python -m benchmarks.hvgp_scaling`."""

import sys

from benchmarks.hvgp_scaling.benchmark import HvgpScaling

if __name__ == "__main__":
    sys.exit(HvgpScaling().main())
