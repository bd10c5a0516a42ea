"""The command `python -m benchmarks.banana_hmk`."""

import sys

from benchmarks.banana_hmk.benchmark import BananaHmk

if __name__ == "__main__":
    sys.exit(BananaHmk().main())
