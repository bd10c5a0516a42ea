"""`import interdomain` does not load GPflux; `interdomain.deep` does, or says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORT = """
import sys
import interdomain as idm
assert not any(name.startswith("gpflux") for name in sys.modules)
assert "interdomain.deep" not in sys.modules
sys.modules["gpflux"] = None
try:
    idm.deep
except ImportError as error:
    assert "pip install 'interdomain[deep]'" in str(error), error
else:
    raise AssertionError("there was no error")
del sys.modules["gpflux"]
assert idm.deep.build.__name__ == "build"
"""


@pytest.mark.slow
def test_on_demand() -> None:
    command = [sys.executable, "-c", IMPORT]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
