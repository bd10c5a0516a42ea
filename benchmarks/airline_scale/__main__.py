"""The command `python -m benchmarks.airline_scale`."""

import sys

from benchmarks.airline_scale.benchmark import AirlineScale

if __name__ == "__main__":
    sys.exit(AirlineScale().main())
