from __future__ import annotations

from interdomain import kernels
from tests.kernels.cases import CASES, public_kernel_classes


def test_every_public_kernel_has_a_case() -> None:
    missing = public_kernel_classes() - {case.kernel_class for case in CASES}
    names = sorted(kernel_class.__name__ for kernel_class in missing)
    assert not missing, f"add {names} to CASES in tests/kernels/cases.py"


def test_the_public_kernels_are_found() -> None:
    assert len(public_kernel_classes()) >= 6
    assert kernels.ArcCosine in public_kernel_classes()
    assert kernels.ZonalKernel not in public_kernel_classes()


def test_cases_build_what_they_say() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert type(case.build(case.columns(2))) is case.kernel_class


def test_all_is_sorted_and_complete() -> None:
    assert kernels.__all__ == sorted(kernels.__all__)
    assert set(kernels.__all__) <= set(dir(kernels))
