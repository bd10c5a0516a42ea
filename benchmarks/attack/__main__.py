"""The command `python -m benchmarks.attack`."""

import sys

from benchmarks.attack.benchmark import Attack

if __name__ == "__main__":
    sys.exit(Attack().main())
