"""Which cases a test runs with, and which of them in the quick tier.

A family's mathematics is tested for every case. What GPflow does with it (copies, wrappers,
optimisers, caches) is code that is shared by all cases of a class, or by all operators of a kind:
there a representative stands for the class, and one case for the kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from .cases import CASES, FIRST_AND_LAST_KIND, ONE_OF_EACH_KIND, REPRESENTATIVES, Case


def param(*values: Any, id: str, quick: bool = True) -> Any:
    """Parameters of a test; if not quick, of one that is in the full tier alone."""
    return pytest.param(*values, id=id, marks=() if quick else pytest.mark.full)


def cases(selected: Iterable[Case], quick: Iterable[Case]) -> pytest.MarkDecorator:
    """A test for each of the selected cases; in the quick tier, for those of ``quick``."""
    return pytest.mark.parametrize(
        "case", [param(case, id=case.name, quick=case in quick) for case in selected]
    )


each_class = cases(REPRESENTATIVES, quick=REPRESENTATIVES)
each_class_quick_each_kind = cases(REPRESENTATIVES, quick=ONE_OF_EACH_KIND)
every_case_quick_each_class = cases(CASES, quick=REPRESENTATIVES)
every_case_quick_each_kind = cases(CASES, quick=ONE_OF_EACH_KIND)
every_case_quick_two_kinds = cases(CASES, quick=FIRST_AND_LAST_KIND)
each_class_quick_two_kinds = cases(REPRESENTATIVES, quick=FIRST_AND_LAST_KIND)
