"""Convolutional GPs that classify images: van der Wilk, Rasmussen and Hensman 2017.

rectangles  Is a rectangle wider than tall? Sections 3.1, 3.2: 1,200 training images of 28 x 28
            pixels, each the outline of a rectangle; probit likelihood; 16 inducing patches of
            3 x 3, uniform noise at first, Adam 0.01 with minibatches of 100, as in the paper. The
            patch kernel starts with variance 100 (invariant) or 300 (weighted), which Adam changes
            by at most about 0.01 a step; the paper's code has 1.
zero_one    MNIST, zeros against ones: 50 inducing patches, probit likelihood.
ten         MNIST, Table 1: ten latent GPs with one kernel, robust-max likelihood. Patches are two
            pixels apart, one in the paper: a quarter of the patches, a sixteenth of the work.
cifar10     Figure 3, on 5,000 training and 1,000 test images decoded from JPEG copies, three pixels
            from patch to patch. The order of the models can be the paper's, accuracies cannot.
cifar10_softmax, cifar10_softmax_small_steps
            cifar10 with a softmax, which penalises certainty if errors are unavoidable, and
            natural gradients of 0.02 and 0.005.

Patches are 5 x 5 except for rectangles. Inducing patches are different patches of training images;
the RBF's inducing points are training images. The learning rate is divided by the cube root of ten
three times, as in the paper's code. The kernels divide by the number of patches, as in the paper's
code and unlike in its formulas. Models:
rbf            a squared exponential on whole images.
rbf_full       rbf with a point at every training image and a full q, by L-BFGS: the paper's
               "1,200 optimally placed inducing points, optimised with BFGS".
invariant      one weight for all patches.
weighted       a weight for each patch; colours: patches of each channel, the baseline.
weighted_rbf   weighted + RBF, a joint q of 2M variables, as in the paper's code for Table 1.
colour_patch   patches of all channels.
additive       colour_patch with a patch kernel that is a sum over the channels.
multi_channel  a function for each channel; shared inducing patches, independent q's.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from gpflow.keras import tf_keras

import interdomain as idm
from benchmarks._lib.data import load_images, only_classes, source_of
from benchmarks._lib.image_models import LabelledRows, labelled_rows
from benchmarks._lib.looks import train
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import figures
from benchmarks._lib.runner import Arguments, Benchmark, Configurations, Entries, Records
from benchmarks._lib.tables import tabulated

# Test error in percent and mean negative log predictive probability, as printed. Figure 3 has only
# curves; the text has two final errors.
PRINTED = """
rectangles: invariant 1.4 0.055, weighted 0.0 0.005, rbf_full 5.0 0.258
zero_one: invariant 0.3 -
ten: rbf 1.90 0.068, invariant 2.08 0.077, weighted 1.22 0.048, weighted_rbf 1.17 0.039
cifar10: rbf 48.6 -, weighted - -, colour_patch - -, additive - -, multi_channel 35.4 -
"""
PAPER = {
    task: {name: [f.strip("-") for f in both] for name, *both in map(str.split, cells.split(", "))}
    for task, cells in (line.split(": ") for line in PRINTED.strip().splitlines())
}
SOFTMAX = {"cifar10_softmax": 0.02, "cifar10_softmax_small_steps": 0.005}
TASKS = (*PAPER, *SOFTMAX)
MODELS = tuple(dict.fromkeys(model for models in PAPER.values() for model in models))
TITLES = {
    "rectangles": "Rectangles, 50,000 test images",
    "zero_one": "MNIST, zeros against ones",
    "ten": "MNIST, ten classes (the paper: M = 750)",
    "cifar10": "CIFAR-10 (the paper: M = 1,000, 50,000 images; other models are between its two "
    "figures)",
}
VARIANCE = {"invariant": 100.0, "weighted": 300.0, "rbf_full": 1.0}  # initial, of rectangles
STEPS = {"invariant": 2_000, "weighted": 3_000, "rbf_full": 500}
CURVE_ROWS = 1_000  # test images of the evaluations during training


class ConvolutionalGps(Benchmark, data_dir=str, tasks=TASKS, models=MODELS, steps=int):
    def configurations(self, arguments: Arguments) -> Configurations:
        for task in arguments.tasks or (("zero_one",) if arguments.short else TASKS):
            for model in PAPER["cifar10" if task in SOFTMAX else task]:
                if not arguments.models or model in arguments.models:
                    run = configuration_of(task, model, arguments.steps)
                    if arguments.short:
                        run |= {"num_inducing": 10, "images": 200, "test_images": 100, "steps": 5}
                    yield {**run, "seed": 0, "source": source_of(arguments.data_dir)}

    def run(self, configuration: Entries, arguments: Arguments) -> Entries:
        task = task_of(configuration)
        file = task if task in ("rectangles", "cifar10") else "mnist"
        images = load_images(file, arguments.data_dir)
        if task == "zero_one":
            images = only_classes(images, 2)
        rows = labelled_rows(
            images,
            train=configuration["images"],
            test=configuration["test_images"],
            seed=configuration["seed"],
            largest=1.0 if task == "rectangles" else 255.0,
        )
        model = build_model(configuration, rows)
        X, Y = rows.X_test[:CURVE_ROWS], rows.Y_test[:CURVE_ROWS]
        predict = Predictor(model, X.shape[1], cached=False)
        rate: Any = configuration["learning_rate"] or 0.0
        if configuration["decay_every"]:
            rate = tf_keras.optimizers.schedules.ExponentialDecay(
                rate, configuration["decay_every"], 10 ** (-1 / 3), staircase=True
            )
        minibatches = configuration["batch_size"] is not None
        optimizer: Any = tf_keras.optimizers.Adam(rate)
        if configuration["natural_gradient"]:
            natural = gpflow.optimizers.NaturalGradient(configuration["natural_gradient"])
            optimizer = (natural, optimizer)
        trained = train(
            model,
            None if configuration["model"] == "rbf_full" else (rows.X_train, rows.Y_train),
            lambda model: class_errors(model, X, Y, predict),
            steps=configuration["steps"],
            points=10,
            batch_size=configuration["batch_size"],
            optimizer=optimizer if minibatches else None,
            seed=configuration["seed"],
        )
        kernel: dict[str, float] = {}
        for path, parameter in gpflow.utilities.parameter_dict(model.kernel).items():
            values = parameter.numpy()
            if path.endswith("weights"):
                kernel[f"{path} (deviation)"] = float(values.std())
            else:
                kernel[path] = float(values.mean())
        return {**class_errors(model, rows.X_test, rows.Y_test), **trained, "kernel": kernel}

    def table(self, records: Records) -> str:
        parts = []
        for task, title in TITLES.items():
            task_records = [one for one in records if task_of(one["configuration"]) == task]
            parts += [f"{title}\n\n{table_of(task_records, PAPER[task])}"] if task_records else []
        return "\n\n".join(parts)


def configuration_of(task: str, model: str, steps: int | None) -> Entries:
    """The configuration of a task and a model: its sizes and its training."""
    if task == "rectangles":
        full = model == "rbf_full"
        return {
            **{"model": model, "num_inducing": 16, "images": 1_200, "test_images": 50_000},
            **{"patch": 3, "stride": 1, "patches_from": "noise", "variance": VARIANCE[model]},
            **{"lengthscale": 1.0, "rbf_variance": 1.0, "rbf_lengthscale": 3.0},
            **{"steps": steps or STEPS[model], "batch_size": None if full else 100},
            **{"learning_rate": None if full else 0.01, "decay_every": None},
            "natural_gradient": None,
        }
    if task in ("zero_one", "ten"):
        ten, steps = task == "ten", steps or 3_000
        return {
            **{"task": task, "model": model, "num_inducing": 200 if ten else 50},
            **{"images": 60_000 if ten else 12_665, "test_images": 10_000, "patch": 5},
            **{"stride": 2 if ten else 1, "patches_from": "images", "variance": 10.0},
            **{"lengthscale": 2.0, "rbf_variance": 10.0 if model == "rbf" else 1.0},
            **{"rbf_lengthscale": 10.0, "steps": steps, "batch_size": 100},
            **{"learning_rate": 0.01, "decay_every": steps // 4, "natural_gradient": None},
        }
    steps = steps or (300 if task in SOFTMAX else 1_000)
    return {
        **{"model": model, "num_inducing": 100, "images": 5_000, "test_images": 1_000},
        **{"patch": 5, "stride": 3, "patches_from": "images"},
        **{"variance": 100.0 if task in SOFTMAX else 10.0, "lengthscale": 1.0},
        **{"rbf_variance": 10.0, "rbf_lengthscale": 10.0, "steps": steps, "batch_size": 50},
        **{"learning_rate": 0.01, "decay_every": steps // 4},
        **{"natural_gradient": SOFTMAX.get(task)},
        **({"likelihood": "softmax"} if task in SOFTMAX else {}),
    }


def task_of(run: Entries) -> str:
    """The task of a configuration; configurations of one task may have different likelihoods."""
    return str(run.get("task", "rectangles" if run["patch"] == 3 else "cifar10"))


def build_model(configuration: Entries, rows: LabelledRows) -> Any:
    """A model at its initial parameters; all latent GPs have one kernel."""
    name, M = configuration["model"], configuration["num_inducing"]
    likelihood: Any = gpflow.likelihoods.Bernoulli()
    if rows.num_classes > 2:
        softmax = configuration.get("likelihood") == "softmax"
        kind = gpflow.likelihoods.Softmax if softmax else gpflow.likelihoods.MultiClass
        likelihood = kind(rows.num_classes)
    num_latent = 1 if rows.num_classes == 2 else rows.num_classes
    settings = {"num_latent_gps": num_latent, "num_data": len(rows.X_train)}
    if name == "rbf_full":
        kernel = _rbf(configuration)
        return gpflow.models.VGP((rows.X_train, rows.Y_train), kernel, likelihood)
    points = gpflow.inducing_variables.InducingPoints
    # Random training images, as in the paper's code.
    order = np.random.default_rng(configuration["seed"]).permutation(len(rows.X_train))
    images = rows.X_train[order[:M]]
    if name == "rbf":
        Z = points(images)
        return gpflow.models.SVGP(_rbf(configuration), likelihood, Z, **settings)
    kernel = _convolutional(configuration, rows)
    if configuration["patches_from"] == "noise":
        generator = np.random.default_rng(configuration["seed"])
        noise = generator.uniform(size=(M, kernel.patch_size))
        patches = idm.inducing_variables.InducingPatches(noise)
    else:
        patches = idm.inducing_variables.InducingPatches.from_data(
            kernel, rows.X_train, M, seed=configuration["seed"]
        )
    if name == "multi_channel":
        shared = idm.inducing_variables.SumInducingVariables([patches] * rows.shape[2])
        return idm.models.AdditiveSVGP(kernel, likelihood, shared, **settings)
    if name == "weighted_rbf":
        patches = idm.inducing_variables.SumInducingVariables([patches, points(images)])
        kernel = kernel + _rbf(configuration)
    return gpflow.models.SVGP(kernel, likelihood, patches, **settings)


def _rbf(configuration: Entries) -> Any:
    return gpflow.kernels.SquaredExponential(
        variance=configuration["rbf_variance"], lengthscales=configuration["rbf_lengthscale"]
    )


def _convolutional(configuration: Entries, rows: LabelledRows) -> Any:
    """The convolutional kernel, or the convolutional summand of a sum."""
    name, patch = configuration["model"], (configuration["patch"],) * 2

    def base() -> Any:
        return gpflow.kernels.SquaredExponential(
            variance=configuration["variance"], lengthscales=configuration["lengthscale"]
        )

    place = {"image_shape": rows.shape, "patch_shape": patch, "stride": configuration["stride"]}
    if name == "multi_channel":
        kernels = [base() for _ in range(rows.shape[2])]
        return idm.kernels.MultiChannelConvolutional(kernels, **place)
    if name == "additive":
        kernels = [base() for _ in range(rows.shape[2])]
        return idm.kernels.Convolutional(idm.kernels.ChannelAdditive(kernels, patch), **place)
    return idm.kernels.Convolutional(
        base(),
        weights=name != "invariant",
        separate_channels=len(rows.shape) == 3 and name == "weighted",
        **place,
    )


def table_of(records: Records, paper: dict[str, list[str]]) -> str:
    """The models in the paper's order: training, the paper's figures, and the figures here."""
    models, rows = list(paper), []
    ordered = sorted(records, key=lambda one: models.index(one["configuration"]["model"]))
    for one in figures(ordered):
        row = {**one, "M": "all" if one["model"] == "rbf_full" else one["num_inducing"]}
        row |= dict(zip(("their_error", "their_nlpp"), paper[one["model"]], strict=True))
        row |= {"method": method_of(one), "error": 100 * (1 - one["accuracy"])}
        rows.append(row | {"nlpp": "not finite" if one["nll"] is None else f"{one['nll']:.3f}"})
    return tabulated(
        rows,
        "model; M; training images = images ,; method; steps = steps ,; "
        "paper: error % = their_error; error % = error .2f; paper: NLPD = their_nlpp; NLPD = nlpp; "
        "s per step = seconds_per_step .2f; training s = train_seconds .0f",
    )


def method_of(run: Entries) -> str:
    """A short text that describes the training of a configuration."""
    if run["batch_size"] is None:
        return "L-BFGS"
    text = f"Adam {run['learning_rate']:g}, {run['batch_size']} images"
    if run["decay_every"] is not None:
        text += f", decay {run['decay_every']:,}"
    if run["natural_gradient"] is not None:
        text += f", natural {run['natural_gradient']:g}"
    return text + (", softmax" if run.get("likelihood") == "softmax" else "")


if __name__ == "__main__":
    ConvolutionalGps.command()
