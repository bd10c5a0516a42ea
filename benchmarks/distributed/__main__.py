"""The command `python -m benchmarks.distributed`."""

import sys

from benchmarks.distributed.benchmark import Distributed

if __name__ == "__main__":
    sys.exit(Distributed().main())
