"""The command `python -m benchmarks.transform_mnist`."""

import sys

from benchmarks.transform_mnist.benchmark import TransformMnist

if __name__ == "__main__":
    sys.exit(TransformMnist().main())
