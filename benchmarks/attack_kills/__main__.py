"""The command `python -m benchmarks.attack_kills`."""

import os
import sys

from benchmarks.attack_kills.benchmark import AttackKills

if __name__ == "__main__":
    if os.name != "posix":
        sys.exit("attack_kills needs POSIX signals")
    sys.exit(AttackKills().main())
