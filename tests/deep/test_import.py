"""`import interdomain` does not load GPflux; `interdomain.deep` does, or says what is missing."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from interdomain import deep

IMPORT = """
import sys
import interdomain as idm
assert "gpflux" not in sys.modules and "interdomain.deep" not in sys.modules
{hidden}
try:
    print(idm.deep.build.__name__)
except ImportError as error:
    print(error)
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("hidden", "expected"),
    [("", "build"), ("sys.modules['gpflux'] = None", "pip install 'interdomain[deep]'")],
)
def test_on_demand(hidden: str, expected: str) -> None:
    command = [sys.executable, "-c", IMPORT.format(hidden=hidden)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert expected in process.stdout


def test_public_names_have_docstrings() -> None:
    for name in deep.__all__:
        assert name == "FEATURES" or inspect.getdoc(getattr(deep, name))
