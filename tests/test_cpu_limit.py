"""A test that takes too long fails, whoever adds it."""

from __future__ import annotations

import pytest

from tests import cpu_limit

FILE = """
import pytest
from tests import cpu_limit

@pytest.fixture
def worked():
    cpu_limit.clock[0] += 30.0

def test_quick():
    pass

def test_busy(worked):
    pass

@pytest.mark.slow
def test_marked(worked):
    pass
"""


def test_a_test_that_takes_too_long_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is the test's own, so that nothing here takes seconds."""
    clock = [0.0]
    pytester.makepyfile(FILE)
    pytester.makeini("[pytest]\nmarkers = slow")
    with monkeypatch.context() as patched:
        patched.setattr(cpu_limit, "clock", clock, raising=False)
        patched.setattr(cpu_limit, "cpu_seconds", lambda: clock[0])
        found = pytester.runpytest_inprocess(plugins=[cpu_limit])
    found.assert_outcomes(passed=2, failed=1)
    message = "E           Failed: the test needs 30.0 s of one core, and may need 20"
    assert message in found.stdout.str()
