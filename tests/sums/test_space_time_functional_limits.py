"""Space and time: functionals that are sparse, dense or refused, and their limits."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern32

import interdomain as idm
from interdomain.functionals import Areas, Derivative, Mean, Value
from interdomain.inducing_variables import ProductInducingVariables, SplineFeatures
from interdomain.kernels import Functional
from interdomain.models import StructuredSGPR
from interdomain.sums.chain.structure import SpaceTime
from interdomain.sums.chain.sums import ChainSums
from tests.conformance.helpers import assert_refused
from tests.parts import frozen
from tests.sums import test_space_time as data
from tests.sums.test_space_time import HOURS, Y, splines, term, time, waves
from tests.sums.test_space_time_functionals import HOUR, assert_alike, rows
from tests.sums.test_space_time_functionals import dense as dense

pytestmark = [
    pytest.mark.usefixtures("no_jitter"),
    pytest.mark.filterwarnings("ignore:inducing_variable. the splines"),
]


def structure(prior: Any, features: Any, *functionals: Any) -> Any:
    return idm.core.pairs.structure_of(features, Functional(prior, functionals))


def test_sparse_dense_or_refused() -> None:
    few, many = data.with_waves(), term(waves(), time(), splines(2, 3_000))
    cycles = data.meters()
    district, own = Areas(np.zeros([2, 4])), Mean(width_columns=[None, None, 4, None])
    assert isinstance(structure(*few, Value(), HOUR), SpaceTime)
    assert structure(*few, Value(), district) is None
    assert structure(*few, own) is None
    assert structure(*cycles, HOUR) is None  # cycles and splines are in the averaged column
    assert isinstance(structure(*cycles, Derivative(2)), SpaceTime)
    in_space = structure(*few, Mean([0.1, 0.1, 0.5, 0]))
    assert structure(*few, HOUR).chain.reach == in_space.chain.reach
    long = term(waves(), time(), SplineFeatures(0.0, 4e5, 200_000, 2))
    assert_refused(
        [
            (lambda: structure(*many, district), "functionals must act .* found Areas with"),
            (lambda: structure(*many, own), "found width_columns with .* pass Means of fixed"),
            (lambda: structure(*cycles, Mean(1.0)), "not act along the columns .* categories"),
            (
                lambda: structure(*long, Mean([0, 0, 1e5, 0])).check_size(),
                "widths or variances of functionals",
            ),
        ]
    )


def test_widths_of_space_in_columns(dense: Any) -> None:
    """Widths of means over space may be columns of X, before the columns of time."""
    space, features = waves()
    prior, products = term((space, features), time(), splines())
    own = Mean([0, 0, 0.5], width_columns=[3, None, None])
    rows_of = Functional(prior, own)
    X = np.column_stack([np.tile([0.3, 0.2], [180, 1]), 0.8 + HOURS * 0.84, 0.2 * data.PLACE])

    def model() -> Any:
        return StructuredSGPR((X, Y), rows_of, products, noise_variance=0.1)

    some, other = model(), dense(model)
    assert isinstance(some._features.sums, ChainSums)
    np.testing.assert_allclose(some.elbo(), other.elbo(), rtol=1e-8)
    assert_alike(some.predict_f(X[:9], full_cov=True), other.predict_f(X[:9], full_cov=True))


def test_slopes_of_maps_at_fixed_places() -> None:
    """Rows at fixed places have no slopes along space, but predictions have."""
    prior, features = data.with_stations()
    kernel = Functional(prior, [HOUR, Derivative(0)])
    X = rows(1)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    assert isinstance(model._features.sums, ChainSums)
    assert not model.feature_parameters
    new = X[:5] + [0.1, 0, 0, 0, 1]
    stock = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=0.1)
    assert_alike(model.predict_f(new), stock.predict_f(new))
    X[7, 4] = 1
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    with pytest.raises(ValueError, match="be values of space .* pass InducingPoints"):
        model.elbo()


def test_nothing_of_the_size_of_the_square() -> None:
    """Hourly means of 60,000 features, of which a dense matrix would have 29 GB."""
    features = SplineFeatures(0.0, 10_000.0, 10_000, 2)
    space = frozen(*data.stations())
    prior, products = term(space, time(Matern32, 3.0), features)
    kernel = Functional(prior, [Value(), Mean([0, 0, 1.0, 0])])
    hours = np.arange(0.5, 10_000.0)[::7]
    place = data.STATIONS[np.arange(len(hours)) % 6]
    X = np.column_stack([place, hours, np.zeros(len(hours)), np.ones(len(hours))])
    model = StructuredSGPR((X, np.sin(hours)[:, None]), kernel, products, noise_variance=0.01)
    assert products.num_inducing == 60_000
    assert np.isfinite(model.elbo())
    assert np.all(np.isfinite(model.predict_f(X[:5])[1]))
    assert isinstance(products, ProductInducingVariables)
    idm.fit(model, steps=1, progress=False)
