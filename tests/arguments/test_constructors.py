"""What every public constructor refuses: each argument, with each value that cannot be right."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import interdomain
from interdomain import inducing_variables, kernels, models
from tests.arguments import sweep
from tests.arguments.table import TABLE
from tests.tiers import in_tiers

PACKAGES = (
    *("kernels", "inducing_variables", "models", "sphere", "transforms"),
    *("streaming", "devices", "distributed", "deep"),
)
"""The packages with classes that users make. (Those of `posteriors` are made by models, those of
`training`, `diagnostics` and `serving` are results.)"""

WITHOUT_ARGUMENTS = {"ReLU"}
MADE_HERE = {"InvalidRowsError", "WorkerLostError", "PlacementReport"}
"""What the library raises and returns, and nobody makes."""
FULL = {
    # Of the same code as others.
    *("SphericalMatern12", "SphericalMatern52", "SphericalSquaredExponential"),
    *("GlobeMatern12", "GlobeMatern52", "GlobeSquaredExponential"),
    *("ChordalSquaredExponential", "MultiChannelConvolutional", "GELU", "Erf"),
    # Slow.
    *("HVGP", "OrthogonalSVGP", "Invariant"),
}


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


def test_right_arguments_are_taken() -> None:
    for name, (make, _) in TABLE.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make(**sweep.good_arguments(name))


@pytest.mark.parametrize("name", in_tiers(TABLE, quick=set(TABLE) - FULL))
def test_wrong_arguments_are_named(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(sweep.outcomes(name))
    wrong = [str(outcome) for outcome in found if outcome.kind != "named"]
    assert not wrong, f"{len(wrong)} of {len(found)}:\n" + "\n".join(wrong)


def test_unknown_arguments_are_answered() -> None:
    for name, (make, arguments) in TABLE.items():
        known = next(iter(arguments))
        message = f"{name} has no argument '{known}_'; did you mean {known}.*takes"
        with pytest.raises(TypeError, match=message):
            make(**(sweep.good_arguments(name) | {f"{known}_": 1}))


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
