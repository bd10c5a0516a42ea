"""What every public constructor refuses: each argument, with one value that cannot be right.

All values of a kind are refused by the check of that kind: tests/arguments/test_checks.py.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import interdomain
from interdomain import inducing_variables, kernels, models
from tests.arguments.table import TABLE

PACKAGES = (
    *("kernels", "inducing_variables", "models", "sphere", "transforms"),
    *("streaming", "devices", "distributed", "deep"),
)
"""The packages with classes that users make. (Those of `posteriors` are made by models, those of
`training`, `diagnostics` and `serving` are results.)"""

WITHOUT_ARGUMENTS = {"ReLU"}
MADE_HERE = {"InvalidRowsError", "WorkerLostError"}
"""What the library raises and returns, and nobody makes."""


def public_constructors() -> Iterator[str]:
    """The classes that can be instantiated, and their class methods that make them."""
    for package in PACKAGES:
        module = getattr(interdomain, package)
        for name in module.__all__:
            kind = getattr(module, name)
            if not inspect.isclass(kind) or inspect.isabstract(kind):
                continue
            yield name
            for method, value in vars(kind).items():
                makes = isinstance(value, (classmethod, staticmethod))
                if makes and not method.startswith(("_", "to_")):
                    yield f"{name}.{method}"


def test_every_public_constructor_is_in_the_table() -> None:
    """A new class, or a new argument, fails here until it has its line in the table."""
    public = set(public_constructors()) - WITHOUT_ARGUMENTS - MADE_HERE
    assert public == set(TABLE), public ^ set(TABLE)
    for name, (make, arguments) in TABLE.items():
        # Paths, and Gaussian(noise_variance) in another form.
        untested = {
            "StructuredSGPR": {"checkpoint_path", "likelihood"},
            "CollapsedSVGP": {"checkpoint_path"},
        }.get(name, set())
        assert set(arguments) == set(inspect.signature(make).parameters) - untested, name


def good_arguments(name: str) -> dict[str, Any]:
    make, arguments = TABLE[name]
    known = inspect.signature(make).parameters
    return {key: argument.good() for key, argument in arguments.items() if key in known}


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    """Of what is only unwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", TABLE)
def test_arguments_are_taken_or_named(name: str) -> None:
    """The right ones are taken; a wrong one is named. The last of its kind's wrong values is the
    one that the constructor may have to refuse by itself: a size that is too large, a sign, a rank,
    a list of nothing."""
    make, arguments = TABLE[name]
    good = good_arguments(name)
    make(**good)
    for key in good:
        label, value = list(arguments[key].wrong.items())[-1]
        with pytest.raises((ValueError, TypeError)) as caught:
            make(**(good_arguments(name) | {key: value}))
            pytest.fail(f"{key}: {label} is accepted")
        assert re.search(rf"\b{key}\b", str(caught.value)), f"{key}: {label}: {caught.value}"


def test_unknown_arguments_are_answered() -> None:
    for name, (make, arguments) in TABLE.items():
        known = next(iter(arguments))
        message = f"{name} has no argument '{known}_'; did you mean {known}.*takes"
        with pytest.raises(TypeError, match=message):
            make(**{f"{known}_": 1})


@pytest.mark.parametrize(
    ("make", "given", "meant"),
    [
        (kernels.SphericalMatern32, "lengthscales", "lengthscale"),
        (kernels.ArcCosine, "variances", "variance"),
        (kernels.ArcCosine, "ARD", "weight_variances"),
        (kernels.HarmonizableComponent, "lengthscales", "lag"),
        (models.AdditiveSVGP, "num_latent", "num_latent_gps"),
        (models.AdditiveSVGP, "inducing_variables", "inducing_variable"),
        (models.StructuredSGPR, "noise", "noise_variance"),
        (inducing_variables.InducingPatches.from_data, "M", "num_inducing"),
    ],
)
def test_spellings_of_gpflow(make: Callable[..., Any], given: str, meant: str) -> None:
    with pytest.raises(TypeError, match=rf"has no argument '{given}'; did you mean {meant}\?"):
        make(**{given: 1.0})


def test_signatures_stay_what_they_are() -> None:
    parameters = inspect.signature(kernels.ArcCosine).parameters
    assert list(parameters)[:3] == ["order", "depth", "variance"]
    assert kernels.ArcCosine.__init__.__qualname__ == "ArcCosine.__init__"
