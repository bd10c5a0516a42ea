"""Whether functions have a mean and a covariance, to within the error of their number."""

import numpy as np

from interdomain.sampling.functions import FunctionSamples

NUM_SAMPLES = 10_000
MOST = 5.0
"""Standard errors: among the thousand entries that are looked at here, one beyond has a chance of
one in a thousand."""


def assert_moments(
    functions: FunctionSamples, X: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> None:
    """The standard errors are those of means of products of as many functions as there are: with
    features of their own, functions are independent, and their moments have no bias.

    :param mean: ``[N, P]``.
    :param cov: ``[P, N, N]``, of each output.
    """
    values = functions(X).numpy().astype(np.float64)
    assert values.shape == (functions.num_samples, len(X), mean.shape[1])
    for output in range(mean.shape[1]):
        centred = values[:, :, output] - np.asarray(mean)[:, output]
        scale = np.max(np.abs(cov[output]))
        assert_mean(centred, 0.0, np.sqrt(scale))
        products = centred[:, :, None] * centred[:, None, :]
        assert_mean(products, np.asarray(cov)[output], scale)


def assert_mean(draws: np.ndarray, expected: np.ndarray | float, scale: float) -> None:
    errors = np.std(draws, axis=0) / np.sqrt(len(draws))
    # An estimate from so many functions, not from a few large ones among them.
    assert np.all(errors < 10 * scale / np.sqrt(len(draws)))
    excess = np.abs(np.mean(draws, axis=0) - expected) / (errors + 1e-6 * scale)
    assert np.max(excess) < MOST, np.max(excess)
