"""Gaussian processes that classify images: built, trained and evaluated, for `rectangles`,
`mnist_conv` and `colour_conv`.

A configuration has these entries and those that its benchmark adds:

model             one of `MODELS`;
num_inducing      M: patches for each convolutional summand, images for each RBF;
patch, stride     width of the square patches and their distance, in pixels;
patches_from      "images": different patches of the training images; "noise": uniform noise;
variance, lengthscale
                  of the base kernel, at first;
rbf_variance, rbf_lengthscale
                  of the RBF kernel on whole images, at first;
steps, batch_size of Adam; without a batch size, iterations of L-BFGS on all images;
learning_rate     of Adam;
decay_every       the learning rate is divided by the cube root of ten after so many steps, again
                  and again (None: it stays);
natural_gradient  step size of natural gradients for q, with Adam for the rest; without it Adam
                  trains q as well;
seed              of the choice of patches and images, and of the minibatches;
likelihood        of more than two classes: "softmax"; without it gpflow's robust maximum, whose
                  expected loss rewards a q that is certain where errors cannot be avoided.

The kernels divide by the number P of patches, as the paper's code does and its formulas do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array, Images
from benchmarks._lib.prediction import Predictor, class_errors
from benchmarks._lib.results import Record
from benchmarks._lib.runner import Configuration
from benchmarks._lib.tables import markdown
from benchmarks._lib.training import train

MODELS = {
    "rbf": "gpflow's SVGP with M images as inducing points",
    "rbf_full": "gpflow's VGP: an inducing point at every training image",
    "invariant": "Convolutional(weights=False)",
    "weighted": "Convolutional; colours: separate_channels=True, the paper's baseline",
    "weighted_rbf": "weighted + RBF, a joint q of 2M variables",
    "colour_patch": "Convolutional on patches of all channels",
    "additive": "the same with ChannelAdditive as base kernel",
    "multi_channel": "MultiChannelConvolutional, shared patches, independent q's",
}
CURVE_POINTS = 10
CURVE_ROWS = 1_000  # test images on which the curves are evaluated


@dataclass(frozen=True)
class LabelledRows:
    """Images as rows, pixels between 0 and 1, and their classes."""

    X_train: Array  # [N, H W C]
    Y_train: NDArray[Any]  # [N, 1]
    X_test: Array
    Y_test: NDArray[Any]
    shape: tuple[int, ...]  # (H, W) or (H, W, C)
    num_classes: int

    @property
    def num_latent(self) -> int:
        """The number of latent GPs: one for two classes."""
        return 1 if self.num_classes == 2 else self.num_classes


def labelled_rows(
    images: Images, *, train: int, test: int, seed: int, largest: float = 255.0
) -> LabelledRows:
    """Random training images, the first test images; pixels are divided by `largest`."""
    chosen = np.random.default_rng(seed).permutation(len(images.X_train))[:train]
    num_classes = int(images.Y_train.max()) + 1
    # A Bernoulli likelihood takes floating-point labels, MultiClass integers.
    label: type[Any] = np.float64 if num_classes == 2 else np.int64
    return LabelledRows(
        X_train=images.X_train[chosen].reshape(len(chosen), -1) / largest,
        Y_train=images.Y_train[chosen, None].astype(label),
        X_test=images.X_test[:test].reshape(len(images.X_test[:test]), -1) / largest,
        Y_test=images.Y_test[:test, None].astype(label),
        shape=images.X_train.shape[1:],
        num_classes=num_classes,
    )


def build_model(configuration: Configuration, rows: LabelledRows) -> Any:
    """A model at its initial parameters; all latent GPs have the same kernel."""
    import gpflow

    import interdomain as idm

    name, M = configuration["model"], configuration["num_inducing"]
    likelihood: Any = gpflow.likelihoods.Bernoulli()
    if rows.num_classes > 2:
        softmax = configuration.get("likelihood") == "softmax"
        kind = gpflow.likelihoods.Softmax if softmax else gpflow.likelihoods.MultiClass
        likelihood = kind(rows.num_classes)
    settings = {"num_latent_gps": rows.num_latent, "num_data": len(rows.X_train)}
    if name == "rbf_full":
        kernel = _rbf(configuration)
        return gpflow.models.VGP((rows.X_train, rows.Y_train), kernel, likelihood)
    points = gpflow.inducing_variables.InducingPoints
    if name == "rbf":
        Z = points(_some_images(configuration, rows))
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
        images = points(_some_images(configuration, rows))
        patches = idm.inducing_variables.SumInducingVariables([patches, images])
        kernel = kernel + _rbf(configuration)
    return gpflow.models.SVGP(kernel, likelihood, patches, **settings)


def _rbf(configuration: Configuration) -> Any:
    import gpflow

    return gpflow.kernels.SquaredExponential(
        variance=configuration["rbf_variance"], lengthscales=configuration["rbf_lengthscale"]
    )


def _some_images(configuration: Configuration, rows: LabelledRows) -> Array:
    """Random training images (the paper's code takes these, too)."""
    generator = np.random.default_rng(configuration["seed"])
    chosen = generator.permutation(len(rows.X_train))[: configuration["num_inducing"]]
    return rows.X_train[chosen]


def _convolutional(configuration: Configuration, rows: LabelledRows) -> Any:
    """The convolutional kernel, or the convolutional summand."""
    import gpflow

    import interdomain as idm

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


def train_and_judge(configuration: Configuration, rows: LabelledRows) -> dict[str, Any]:
    """Train one configuration.

    :returns: accuracy and nll of the test images, what `training.train` returns, and the kernel's
        variances and lengthscales.
    """
    model = build_model(configuration, rows)
    minibatches = configuration["batch_size"] is not None
    X, Y = rows.X_test[:CURVE_ROWS], rows.Y_test[:CURVE_ROWS]
    predict = Predictor(model, X.shape[1], cached=False)
    holds_data = configuration["model"] == "rbf_full"
    trained = train(
        model,
        None if holds_data else (rows.X_train, rows.Y_train),
        lambda model: class_errors(model, X, Y, predict),
        steps=configuration["steps"],
        points=CURVE_POINTS,
        batch_size=configuration["batch_size"],
        optimizer=optimizer_of(configuration) if minibatches else None,
        seed=configuration["seed"],
    )
    errors = class_errors(model, rows.X_test, rows.Y_test)
    return {**errors, **trained, "kernel": kernel_parameters(model)}


def optimizer_of(configuration: Configuration) -> Any:
    """Adam with the configuration's learning rate and its decay, and natural gradients."""
    import gpflow
    from gpflow.keras import tf_keras

    rate: Any = configuration["learning_rate"]
    if configuration["decay_every"] is not None:
        rate = tf_keras.optimizers.schedules.ExponentialDecay(
            rate, configuration["decay_every"], 10 ** (-1 / 3), staircase=True
        )
    adam, size = tf_keras.optimizers.Adam(rate), configuration["natural_gradient"]
    return adam if size is None else (gpflow.optimizers.NaturalGradient(size), adam)


def kernel_parameters(model: Any) -> dict[str, float]:
    """The variances and lengthscales of the kernel, by path, and the spread of the weights."""
    import gpflow

    found: dict[str, float] = {}
    for path, parameter in gpflow.utilities.parameter_dict(model.kernel).items():
        values = parameter.numpy()
        if path.endswith("weights"):
            found[f"{path} (deviation)"] = float(values.std())
        else:
            found[path] = float(values.mean())
    return found


@dataclass(frozen=True)
class PaperErrors:
    """Test error in percent and mean negative log predictive probability, as printed."""

    error: float | None = None
    nlpp: float | None = None
    decimals: int = 2  # of the error


def table_of(records: Sequence[Record], paper: dict[str, PaperErrors]) -> str:
    """The models in the order of `MODELS`: what was run, the paper's figures, ours."""
    names, rows = list(MODELS), []
    for record in sorted(records, key=lambda record: names.index(record["configuration"]["model"])):
        run, result = record["configuration"], record["result"]
        printed = paper.get(run["model"], PaperErrors())
        rows.append(
            (
                run["model"],
                "all" if run["model"] == "rbf_full" else run["num_inducing"],
                "" if run["model"].startswith("rbf") else run["stride"],
                *(f"{run['images']:,}", method_of(run), f"{run['steps']:,}"),
                "" if printed.error is None else f"{printed.error:.{printed.decimals}f}",
                f"{100 * (1 - result['accuracy']):.2f}",
                "" if printed.nlpp is None else f"{printed.nlpp:.3f}",
                "not finite" if result["nll"] is None else f"{result['nll']:.3f}",
                *(f"{result['seconds_per_step']:.2f}", f"{result['train_seconds']:.0f}"),
            )
        )
    headers = (
        *("model", "M", "stride", "training images", "method", "steps"),
        *("paper: error %", "ours", "paper: nlpp", "ours", "s per step", "training s"),
    )
    return markdown(headers, rows)


def method_of(run: Configuration) -> str:
    """How a configuration is trained, in a few words."""
    if run["batch_size"] is None:
        return "L-BFGS"
    text = f"Adam {run['learning_rate']:g}, {run['batch_size']} images"
    if run["decay_every"] is not None:
        text += f", decay {run['decay_every']:,}"
    if run["natural_gradient"] is not None:
        text += f", natural {run['natural_gradient']:g}"
    return text + (", softmax" if run.get("likelihood") == "softmax" else "")
