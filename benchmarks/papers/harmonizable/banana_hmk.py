"""Banana classification with a harmonizable mixture: inducing points and Fourier features
(Shen, Heinonen and Kaski 2019, section 5.2, Figure 2 and section 6.2 of the supplement).

400 training rows of two inputs, 4,900 test rows, Bernoulli likelihood, P = 4 components of two
frequencies. A full variational GP (gpflow's VGP) trains the kernel. Sparse models have that kernel:
full                the VGP.
points              SVGP with 6, 8, 12, 18 and 24 inducing points, at first by k-means.
fourier             AdditiveSVGP with 2, 4, 6 and 8 frequencies for each component, mean-field q.
fourier_joint       SVGP with these features and a joint q.
fourier_whole       SVGP with 3, 4, 6, 9 and 12 frequencies of the whole mixture.
200 natural gradient steps train only q. 700 rounds follow, each with a natural gradient step for q
and an Adam step for the points or frequencies.

Compare models with equal numbers of variational parameters: M + M (M + 1) / 2 for each block of M
variables. A frequency has two variables, or one if it is zero.

The picture, banana_hmk.png, is drawn from the records.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
from gpflow.keras import tf_keras

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays, source_of
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.regression import inducing_points
from benchmarks._lib.results import figures, significant
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated

SIZES = {
    "points": (6, 8, 12, 18, 24),
    "fourier": (2, 4, 6, 8),
    "fourier_joint": (2, 4, 6, 8),
    "fourier_whole": (3, 4, 6, 9, 12),
}
DRAWN = {**SIZES, "points": (6, 12, 18, 24), "fourier_whole": (3, 6, 9, 12)}
GRID = 60  # predictions are stored on a grid of GRID x GRID inputs
MARGIN = 0.5  # of the grid around the training inputs


class BananaHmk(Benchmark, data_dir=str):
    def configurations(self, arguments: Arguments) -> Configurations:
        short = arguments.short
        full = {
            "model": "full",
            "num_components": 4,
            "num_frequencies": 2,
            "full_steps": 5 if short else 200,
            "learning_rate": 0.01,
            "natural_gradient": 0.1,
            "source": source_of(arguments.data_dir),
        }
        yield full
        sparse = {"q_steps": 5 if short else 200, "rounds": 5 if short else 700}
        for model, sizes in SIZES.items():
            for size in sizes[: 1 if short else None]:
                more = {"model": model, "size": size, "kernel": "fixed", "seed": 0}
                yield {**full, **sparse, **more}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        data = banana(arguments.data_dir)
        if configuration["model"] == "full":
            return train_full(configuration, data)
        shared = ("num_components", "num_frequencies", "full_steps", "source")
        wanted = {name: configuration[name] for name in shared}
        remedy = "there is no record of the full model, which the kernel comes from"
        full = self.stored(arguments, remedy, model="full", **wanted)
        return train_sparse(configuration, data, full["kernel_parameters"])

    def table(self, records: Records) -> str:
        """One row for each size of each model, by the number of variational parameters."""
        ordered = sorted(records, key=lambda one: one["result"].get("num_variational", 0))
        rows = [
            {**one, "error": 100 * one["test_error"], "accuracy": 100 * one["train_accuracy"]}
            for one in figures(ordered)
        ]
        return "Banana, 4,900 test rows; the paper's Figure 2 gives no numbers.\n\n" + tabulated(
            rows,
            "model; points, frequencies = size; variational parameters = num_variational; "
            "test error, % = error .2f; NLPD = test_nlpd .3f; training accuracy, % = accuracy .1f; "
            "ELBO = elbo .1f; seconds = train_seconds .0f",
        )

    def draw(self, folder: Path, records: Records, arguments: Arguments) -> None:
        """Draw the paper's Figure 2: decision boundaries of each size, the VGP's dashed."""
        data = banana(arguments.data_dir)
        from matplotlib.figure import Figure

        by_size = {(one["model"], one.get("size")): one for one in figures(records)}
        figure = Figure(figsize=(11.0, 10.5), layout="constrained")
        first, second = grid_axes(data["X"])
        for row, (model, sizes) in zip(figure.subplots(len(DRAWN), 4), DRAWN.items(), strict=True):
            for axis, size in zip(row, sizes, strict=True):
                axis.set_axis_off()
                result = by_size.get((model, size))
                if result is None:
                    continue
                for label, colour in ((0.0, "C0"), (1.0, "C1")):
                    rows = data["X"][data["Y"][:, 0] == label]
                    axis.plot(*rows.T, ".", color=colour, ms=2.5, alpha=0.5)
                full = probabilities_of(by_size["full", None])
                axis.contour(first, second, full.T, [0.5], colors="grey", linestyles="dashed")
                axis.contour(first, second, probabilities_of(result).T, [0.5], colors="k")
                if "points" in result:
                    axis.plot(*np.array(result["points"]).T, "ko", mfc="none", ms=5)
                axis.plot(*np.array(result["centres"]).T, "r^", ms=6)
                axis.set_xlim(first[0], first[-1])
                axis.set_ylim(second[0], second[-1])
                numbers, error = result["num_variational"], 100 * result["test_error"]
                axis.set_title(f"{model} {size}: {numbers} numbers, {error:.1f}%", fontsize=8)
        figure.savefig(folder / "banana_hmk.png", dpi=65)


def banana(data_dir: str | None) -> dict[str, Array]:
    """X, Y, X_test and Y_test; labels are 0 and 1."""
    arrays = load_arrays("banana", data_dir)
    names = ("X", "Y", "X_test", "Y_test")
    return {name: np.asarray(arrays[name], dtype=np.float64) for name in names}


def initial_kernel(configuration: Entries, data: Mapping[str, Array]) -> Any:
    """The mixture that `from_data` finds in the training rows."""
    sizes = configuration["num_components"], configuration["num_frequencies"]
    return idm.kernels.HarmonizableMixture.from_data(data["X"], 2.0 * data["Y"] - 1.0, *sizes)


def train_full(configuration: Entries, data: Mapping[str, Array]) -> dict[str, Any]:
    """The figures of the VGP, and the parameters of its kernel."""
    kernel = initial_kernel(configuration, data)
    likelihood = gpflow.likelihoods.Bernoulli()
    model = gpflow.models.VGP((data["X"], data["Y"]), kernel, likelihood)
    natural = gpflow.optimizers.NaturalGradient(configuration["natural_gradient"])
    optimizer = natural, configuration["learning_rate"]
    outcome = idm.fit(model, steps=configuration["full_steps"], optimizer=optimizer)
    return {
        "elbo": outcome.elbo,
        "train_seconds": round(outcome.seconds, 1),
        "kernel_parameters": {
            path: significant(parameter.numpy())
            for path, parameter in gpflow.utilities.parameter_dict(kernel).items()
        },
        **judged(model, data),
    }


def train_sparse(
    configuration: Entries, data: Mapping[str, Array], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures of a sparse model with the kernel of the full one."""
    kernel = initial_kernel(configuration, data)
    values = {name: np.array(value) for name, value in parameters.items()}
    gpflow.utilities.multiple_assign(kernel, values)
    gpflow.set_trainable(kernel, False)
    name, size = configuration["model"], configuration["size"]
    if name == "points":
        Z = inducing_points(data["X"], size, configuration["seed"])
        places = gpflow.inducing_variables.InducingPoints(Z)
    else:
        places = idm.inducing_variables.HarmonizableFourierFeatures.for_kernel(
            kernel, size, per_component=name != "fourier_whole"
        )
    kind = idm.models.AdditiveSVGP if name == "fourier" else gpflow.models.SVGP
    likelihood = gpflow.likelihoods.Bernoulli()
    model = kind(kernel, likelihood, places, num_data=len(data["X"]))
    rows, alone = (data["X"], data["Y"]), configuration["q_steps"]
    # One compiled step serves both phases: in the first phase Adam's steps have length zero.
    rate = tf_keras.optimizers.schedules.PiecewiseConstantDecay(
        [alone - 1], [0.0, configuration["learning_rate"]]
    )
    natural = gpflow.optimizers.NaturalGradient(configuration["natural_gradient"])
    optimizer = natural, tf_keras.optimizers.Adam(rate)
    outcome = idm.fit(model, rows, steps=alone + configuration["rounds"], optimizer=optimizer)
    pairs = getattr(model, "variational_parameters", None) or [(model.q_mu, model.q_sqrt)]
    blocks = [int(mean.shape[0]) for mean, _ in pairs]
    return {
        "elbo": float(model.elbo(rows)),
        "num_variational": sum(M + M * (M + 1) // 2 for M in blocks),
        "train_seconds": round(outcome.seconds, 1),
        **({"points": significant(places.Z.numpy())} if name == "points" else {}),
        **judged(model, data),
    }


def grid_axes(X: Array) -> list[Array]:
    """The two axes of the grid of stored predictions."""
    return [np.linspace(column.min() - MARGIN, column.max() + MARGIN, GRID) for column in X.T]


def judged(model: Any, data: Mapping[str, Array]) -> dict[str, Any]:
    """Errors of training and test rows, the centres, and the probabilities on the grid, in steps of
    1/255, as compressed text."""
    predict = Predictor(model, 2)
    test = class_errors(model, data["X_test"], data["Y_test"], predict)
    train = class_errors(model, data["X"], data["Y"], predict)
    axes = grid_axes(data["X"])
    inputs = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, variance = predict(inputs)
    probabilities = np.asarray(model.likelihood.predict_mean_and_var(inputs, mean, variance)[0])
    steps = np.round(255 * probabilities).astype(np.uint8).tobytes()
    return {
        "test_error": 1.0 - test["accuracy"],
        "test_nlpd": test["nll"],
        "train_accuracy": train["accuracy"],
        "train_nlpd": train["nll"],
        "centres": [significant(part.centre.numpy()) for part in model.kernel.kernels],
        "probabilities": base64.b64encode(zlib.compress(steps, 9)).decode(),
    }


def probabilities_of(result: Mapping[str, Any]) -> Array:
    """The probabilities on the grid that `judged` has packed, [GRID, GRID]."""
    steps = zlib.decompress(base64.b64decode(result["probabilities"]))
    return np.frombuffer(steps, dtype=np.uint8).reshape(GRID, GRID) / 255.0


if __name__ == "__main__":
    BananaHmk.command()
