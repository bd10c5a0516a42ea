"""The data and the models of `banana_hmk`: how each is built, trained and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array, DataError, load_arrays
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import Record, significant
from benchmarks._lib.runner import Configuration
from benchmarks.banana_hmk.grid import GRID, grid_axes, packed

FULL = "full"
FREQUENCY_NOISE = 0.1  # of restarts, in standard deviations of the spectral density


def banana(data_dir: Path | None) -> dict[str, Array]:
    """X, Y, X_test and Y_test; labels are 0 and 1.

    :raises DataError: without `data_dir`, or when its file has no such arrays.
    """
    arrays = load_arrays("banana", data_dir)
    wanted = ("X", "Y", "X_test", "Y_test")
    missing = set(wanted) - set(arrays)
    if missing:
        raise DataError(f"data set 'banana' lacks the arrays {sorted(missing)}")
    return {name: np.asarray(arrays[name], dtype=np.float64) for name in wanted}


def initial_kernel(configuration: Configuration, data: Mapping[str, Array]) -> Any:
    """The mixture that `from_data` finds in the training rows."""
    import interdomain as idm

    return idm.kernels.HarmonizableMixture.from_data(
        data["X"],
        2.0 * data["Y"] - 1.0,
        configuration["num_components"],
        configuration["num_frequencies"],
    )


def train_full(configuration: Configuration, data: Mapping[str, Array]) -> dict[str, Any]:
    """The VGP, and the parameters of its kernel."""
    import gpflow

    import interdomain as idm

    kernel = initial_kernel(configuration, data)
    likelihood = gpflow.likelihoods.Bernoulli()
    model = gpflow.models.VGP((data["X"], data["Y"]), kernel, likelihood)
    outcome = idm.fit(
        model,
        steps=configuration["full_steps"],
        optimizer=configuration["learning_rate"],
        natural_gradient=configuration["natural_gradient"],
    )
    return {
        "elbo": outcome.elbo,
        "train_seconds": round(outcome.seconds, 1),
        "kernel_parameters": {
            path: significant(parameter.numpy())
            for path, parameter in gpflow.utilities.parameter_dict(kernel).items()
        },
        **judged(model, data),
    }


def full_record(configuration: Configuration, records: Sequence[Record]) -> Record:
    """The VGP that the kernel of a sparse model comes from.

    :raises DataError: when there is none.
    """
    shared = ("num_components", "num_frequencies", "full_steps", "source")
    for record in records:
        run = record["configuration"]
        if run["model"] == FULL and all(run[name] == configuration[name] for name in shared):
            return record
    raise DataError("there is no record of the full model, which the kernel comes from")


def train_sparse(
    configuration: Configuration, data: Mapping[str, Array], full: Record
) -> dict[str, Any]:
    """One restart of a sparse model, started with the kernel of the full one."""
    from gpflow.keras import tf_keras

    import interdomain as idm

    model = build_sparse(configuration, data, full)
    rows, alone = (data["X"], data["Y"]), configuration["q_steps"]
    # One compiled step serves both phases: in the first one Adam's steps have length zero.
    rate = tf_keras.optimizers.schedules.PiecewiseConstantDecay(
        [alone - 1], [0.0, configuration["learning_rate"]]
    )
    outcome = idm.fit(
        model,
        rows,
        steps=alone + configuration["rounds"],
        optimizer=tf_keras.optimizers.Adam(rate),
        natural_gradient=configuration["natural_gradient"],
    )
    places = model.inducing_variable
    return {
        "elbo": float(model.elbo(rows)),
        "num_variational": num_variational(model),
        "train_seconds": round(outcome.seconds, 1),
        **({"points": significant(places.Z.numpy())} if configuration["model"] == "points" else {}),
        **judged(model, data),
    }


def build_sparse(configuration: Configuration, data: Mapping[str, Array], full: Record) -> Any:
    """A sparse model at its initial parameters."""
    import gpflow

    import interdomain as idm
    from benchmarks._lib.regression import inducing_points

    kernel = initial_kernel(configuration, data)
    found = full["result"]["kernel_parameters"]
    gpflow.utilities.multiple_assign(kernel, {name: np.array(v) for name, v in found.items()})
    seed, size = configuration["seed"], configuration["size"]
    if configuration["model"] == "points":
        points = inducing_points(data["X"], size, seed)
        places = gpflow.inducing_variables.InducingPoints(points)
    else:
        places = idm.inducing_variables.HarmonizableFourierFeatures.for_kernel(kernel, size)
        if seed > 0:
            add_noise(places, kernel, np.random.default_rng(seed))
    if configuration["kernel"] == "fixed":
        gpflow.set_trainable(kernel, False)
    model = idm.models.AdditiveSVGP if configuration["model"] == "fourier" else gpflow.models.SVGP
    return model(kernel, gpflow.likelihoods.Bernoulli(), places, num_data=len(data["X"]))


def add_noise(places: Any, kernel: Any, generator: np.random.Generator) -> None:
    """Move the frequencies of each component a little; zero stays, since it has one variable."""
    for block, component in zip(places.inducing_variables, kernel.kernels, strict=True):
        frequencies = block.frequencies.numpy()
        tensors = component.tensors()
        deviations = np.sqrt(np.diag(tensors.excess + tensors.envelope / 4))
        noise = FREQUENCY_NOISE * deviations * generator.normal(size=frequencies.shape)
        block.frequencies.assign(frequencies + noise * np.any(frequencies != 0, axis=1)[:, None])


def num_variational(model: Any) -> int:
    """The nonzero entries of q_mu and q_sqrt."""
    pairs = getattr(model, "variational_parameters", None) or [(model.q_mu, model.q_sqrt)]
    sizes = [int(mean.shape[0]) for mean, _ in pairs]
    return sum(M + M * (M + 1) // 2 for M in sizes)


def judged(model: Any, data: Mapping[str, Array]) -> dict[str, Any]:
    """Errors of training and test rows, the centres, and the probabilities on the grid."""
    predict = Predictor(model, 2)
    test = class_errors(model, data["X_test"], data["Y_test"], predict)
    train = class_errors(model, data["X"], data["Y"], predict)
    axes = grid_axes(data["X"])
    inputs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, variance = predict(inputs)
    probabilities = np.asarray(model.likelihood.predict_mean_and_var(inputs, mean, variance)[0])
    return {
        "test_error": 1.0 - test["accuracy"],
        "test_nlpd": test["nll"],
        "train_accuracy": train["accuracy"],
        "train_nlpd": train["nll"],
        "centres": [significant(part.centre.numpy()) for part in model.kernel.kernels],
        "probabilities": packed(probabilities.reshape(GRID, GRID)),
    }
