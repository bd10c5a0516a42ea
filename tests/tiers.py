"""Parameters of which some are in the quick tier, and all in the full one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def in_tiers(cases: Iterable[Any], quick: Collection[Any]) -> list[Any]:
    """All cases as parameters; those that are not ``quick`` carry the mark ``full``.

    :raises AssertionError: If one of ``quick`` is no case.
    """
    cases = list(cases)
    assert all(case in cases for case in quick), quick
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in quick else pytest.mark.full,
        )
        for case in cases
    ]
