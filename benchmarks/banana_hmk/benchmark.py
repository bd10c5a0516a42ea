"""Banana classification with a harmonizable mixture: inducing points against Fourier features
(Shen, Heinonen and Kaski 2019, section 5.2, Figure 2 and section 6.2 of the supplement).

400 training rows of two inputs, 4,900 test rows, Bernoulli likelihood, P = 4 components of two
frequencies. The kernel is learned by a full variational GP (gpflow's VGP); sparse models then start
with that kernel:
full                the VGP;
points              SVGP with 6, 8, 12, 18 and 24 inducing points, at first by k-means;
fourier             AdditiveSVGP with 2, 4, 6 and 8 frequencies for each component: q is mean-field;
fourier_joint       SVGP with the same features and a joint q.
200 natural gradient steps for q alone are followed by 700 rounds of a natural gradient step for q
and an Adam step for everything else (the kernel too; with `--kernels fixed` all but the kernel).
Of five restarts, other k-means or frequencies with some noise, the one with the highest training
accuracy counts (of equal ones that with the highest bound).

Compared are models of equal numbers of variational parameters: M + M (M + 1) / 2 for each block of
M variables, a frequency having two, or one if it is zero.

The picture, banana_hmk.png, is drawn from the records.
"""

from __future__ import annotations

import argparse
import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._lib.data import Array, DataError, add_data_argument, load_arrays, source_of
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import Record, ResultFile
from benchmarks._lib.runner import Benchmark, Configuration, indices, names, result_folder
from benchmarks._lib.tables import markdown, mean_and_deviation, ranges

SIZES = {
    "points": (6, 8, 12, 18, 24),
    "fourier": (2, 4, 6, 8),
    "fourier_joint": (2, 4, 6, 8),
}
FULL = "full"
KERNELS = ("fixed", "trained")
NUM_COMPONENTS = 4
GRID = 60  # predictions are stored on a grid of GRID x GRID inputs
MARGIN = 0.5  # around the training inputs
FREQUENCY_NOISE = 0.1  # of restarts, in standard deviations of the spectral density
DRAWN = {"points": (6, 12, 18, 24), "fourier": (2, 4, 6, 8), "fourier_joint": (2, 4, 6, 8)}


class BananaHmk(Benchmark):
    __doc__ = __doc__
    name = "banana_hmk"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_data_argument(parser)
        parser.add_argument("--models", type=names(tuple(SIZES), "sparse models"), default=None)
        parser.add_argument("--num-frequencies", type=int, default=2, help="of each component")
        parser.add_argument("--full-steps", type=int, default=None, help="of the VGP, default 200")
        parser.add_argument("--rounds", type=int, default=None, help="default 700")
        parser.add_argument(
            "--kernels",
            type=names(KERNELS, "ways with the kernel"),
            default=None,
            help="in phase 2",
        )
        parser.add_argument("--seeds", type=indices, default=None, help="restarts, default 0-4")

    def configurations(self, arguments: argparse.Namespace) -> Iterable[Configuration]:
        short = arguments.short
        full = {
            "model": FULL,
            "num_components": NUM_COMPONENTS,
            "num_frequencies": arguments.num_frequencies,
            "full_steps": arguments.full_steps or (5 if short else 200),
            "learning_rate": 0.01,
            "natural_gradient": 0.1,
            "source": source_of(arguments.data_dir),
        }
        yield full
        for seed in arguments.seeds or ([0] if short else range(5)):
            for kernel in arguments.kernels or KERNELS[: 1 if short else None]:
                for model in arguments.models or tuple(SIZES):
                    for size in SIZES[model][: 1 if short else None]:
                        yield {
                            **full,
                            "model": model,
                            "size": size,
                            "q_steps": 5 if short else 200,
                            "rounds": arguments.rounds or (5 if short else 700),
                            "kernel": kernel,
                            "seed": seed,
                        }

    def run(self, configuration: Configuration, arguments: argparse.Namespace) -> dict[str, Any]:
        data = banana(arguments.data_dir)
        if configuration["model"] == FULL:
            return train_full(configuration, data)
        file = ResultFile(result_folder(arguments) / f"{self.name}.jsonl")
        return train_sparse(configuration, data, full_record(configuration, file.records()))

    def table(self, records: Sequence[Record]) -> str:
        return table_of(records)

    def draw(self, folder: Path, records: Sequence[Record], arguments: argparse.Namespace) -> None:
        draw(folder, records, banana(arguments.data_dir))


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
    outcome = idm.training.fit(
        model,
        steps=configuration["full_steps"],
        learning_rate=configuration["learning_rate"],
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
    outcome = idm.training.fit(
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
        places = idm.inducing_variables.FourierFeatures.for_kernel(kernel, size)
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


def grid_axes(X: Array) -> tuple[Array, Array]:
    """The two axes of the grid of stored predictions."""
    first, second = (
        np.linspace(column.min() - MARGIN, column.max() + MARGIN, GRID) for column in X.T
    )
    return first, second


def packed(probabilities: Array) -> str:
    """Probabilities in steps of 1/255, compressed, as text."""
    values = np.round(255 * probabilities).astype(np.uint8)
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def unpacked(text: str) -> Array:
    """What `packed` has packed, [GRID, GRID]."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return values.reshape(GRID, GRID) / 255.0


def significant(values: Any) -> Any:
    """Nested lists with nine digits."""
    if np.ndim(values) == 0:
        return float(f"{float(values):.9g}")
    return [significant(entry) for entry in values]


def chosen(records: Sequence[Record]) -> Record:
    """Of restarts, that with the highest training accuracy, and then the highest bound."""
    return max(records, key=lambda r: (r["result"]["train_accuracy"], r["result"]["elbo"]))


def table_of(records: Sequence[Record]) -> str:
    """One row for each size of each model, by the number of variational parameters."""
    rows = []
    for record in records:
        if record["configuration"]["model"] == FULL:
            row = [FULL, None, None, *_figures(record["result"]), None, None, None]
            rows.append((*row, f"{record['result']['train_seconds']:.0f}", None))
    groups = _grouped(records)
    for key in sorted(groups, key=lambda key: (key[2:], _variational(groups[key]), key[:2])):
        found, best = groups[key], chosen(groups[key])
        results = [record["result"] for record in found]
        rows.append(
            (
                key[0] if key[2] == "trained" else f"{key[0]}, kernel fixed",
                key[1],
                _variational(found),
                *_figures(best["result"]),
                mean_and_deviation([100 * result["test_error"] for result in results], decimals=2),
                mean_and_deviation([result["test_nlpd"] for result in results]),
                f"{best['result']['elbo']:.1f}",
                f"{np.median([result['train_seconds'] for result in results]):.0f}",
                ranges(record["configuration"]["seed"] for record in found),
            )
        )
    headers = (
        *("model", "points, frequencies", "variational parameters", "test error, %", "NLPD"),
        *("training accuracy, %", "error of all restarts", "NLPD of all", "ELBO", "seconds"),
        "restarts",
    )
    return (
        "Banana, 4,900 test rows. Of the restarts the one with the highest training accuracy; the "
        "paper's Figure 2 gives no numbers.\n\n" + markdown(headers, rows)
    )


def draw(folder: Path, records: Sequence[Record], data: Mapping[str, Array]) -> None:
    """The paper's Figure 2: decision boundaries of each size, the VGP's dashed."""
    from matplotlib.figure import Figure

    groups = _grouped(records)
    kernel = "trained" if any(key[2] == "trained" for key in groups) else "fixed"
    best = {key[:2]: chosen(found) for key, found in groups.items() if key[2] == kernel}
    if not best:
        return
    full = [record for record in records if record["configuration"]["model"] == FULL]
    figure = Figure(figsize=(11.0, 8.0), layout="constrained")
    axes = figure.subplots(len(DRAWN), 4, squeeze=False)
    for row, (model, sizes) in zip(axes, DRAWN.items(), strict=True):
        for axis, size in zip(row, sizes, strict=True):
            axis.set_axis_off()
            if (model, size) in best:
                _draw_boundary(axis, best[model, size], full, data)
    figure.savefig(folder / "banana_hmk.png", dpi=65)


def _draw_boundary(
    axis: Any, record: Record, full: Sequence[Record], data: Mapping[str, Array]
) -> None:
    result, run = record["result"], record["configuration"]
    for label, colour in ((0.0, "C0"), (1.0, "C1")):
        rows = data["X"][data["Y"][:, 0] == label]
        axis.plot(*rows.T, ".", color=colour, ms=2.5, alpha=0.5)
    first, second = grid_axes(data["X"])
    for other in full[:1]:
        values = unpacked(other["result"]["probabilities"])
        axis.contour(first, second, values.T, [0.5], colors="grey", linestyles="dashed")
    axis.contour(first, second, unpacked(result["probabilities"]).T, [0.5], colors="k")
    if "points" in result:
        axis.plot(*np.array(result["points"]).T, "ko", mfc="none", ms=5)
    axis.plot(*np.array(result["centres"]).T, "r^", ms=6)
    axis.set_xlim(first[0], first[-1])
    axis.set_ylim(second[0], second[-1])
    axis.set_title(
        f"{run['model']} {run['size']}: {result['num_variational']} numbers, "
        f"{100 * result['test_error']:.1f}%",
        fontsize=8,
    )


def _figures(result: Mapping[str, Any]) -> tuple[str, str, str]:
    return (
        f"{100 * result['test_error']:.2f}",
        f"{result['test_nlpd']:.3f}",
        f"{100 * result['train_accuracy']:.1f}",
    )


def _variational(records: Sequence[Record]) -> int:
    return int(chosen(records)["result"]["num_variational"])


def _grouped(records: Sequence[Record]) -> dict[tuple[str, int, str, int, int], list[Record]]:
    """The restarts of sparse models: by model, size, whether the kernel is trained, its Q, and
    rounds."""
    groups: dict[tuple[str, int, str, int, int], list[Record]] = {}
    for record in records:
        run = record["configuration"]
        if run["model"] != FULL:
            key = (run["model"], run["size"], run["kernel"], run["num_frequencies"], run["rounds"])
            groups.setdefault(key, []).append(record)
    return groups
