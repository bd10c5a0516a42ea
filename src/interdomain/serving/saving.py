"""``save``: writes a model or posterior as a SavedModel that predicts."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.likelihoods import Likelihood
from gpflow.models import BayesianModel
from gpflow.posteriors import AbstractPosterior

from .._arguments import boolean, integer
from .._tracing import Traced, compiled
from .formats import Metadata, as_path, check_free, write_folder
from .predictors import FULL_COV, METHODS, OF_TARGETS, Predictor
from .sorts import saved_predictor

_RESULTS = ("mean", "variance")
"""Names in the signatures."""


def save(
    model: BayesianModel | AbstractPosterior,
    path: str | os.PathLike[str],
    *,
    likelihood: Likelihood | None = None,
    num_columns: int | None = None,
    overwrite: bool = False,
) -> None:
    """Save a model for prediction, as a folder with a TensorFlow SavedModel.

    The folder holds the cache of the posterior and the parameters of the kernel and the likelihood.
    It does not hold q(u) itself, an optimizer, or, for models with inducing variables, any data, so
    training cannot be continued from it. (``GPR``, ``VGP`` and ``GPMC`` predict from their rows,
    which are therefore saved. GPflow's ``CGLB`` cannot be compiled, but ``CGLB.posterior()`` can.)
    A :class:`interdomain.deep.DeepGP` is saved with its random draws for ``num_prediction_samples``
    samples, and the parameters of its layers. The functions are

    * ``predict_f(Xnew)`` and ``predict_f_mean(Xnew)``, for any number of rows ``[N, D]``;
    * ``predict_f_full_cov(Xnew)``, the mean with the covariances ``[P, N, N]``, if the model has
      them;
    * ``predict_y(Xnew)`` and ``predict_log_density((Xnew, Y))``, if there is a likelihood that has
      them.

    They can be loaded by :func:`interdomain.serving.load`, which also checks rows, or by
    ``tf.saved_model.load`` in a process without this library and GPflow. Each is also a signature
    for TensorFlow Serving, with inputs "Xnew" and "Y" and outputs "mean", "variance" and
    "log_density"; ``predict_f`` is the default signature.

    :param model: A GPflow model, a posterior or a ``DeepGP``. A posterior with a cache is saved as
        it is; otherwise the cache is computed.
    :param path: A new folder. It is written completely or not at all.
    :param likelihood: The likelihood, if ``model`` is a posterior, which has none. Without it only
        predictions of f are saved.
    :param num_columns: The number D of columns of X, if the model does not know it, as with a
        kernel that selects its columns by ``active_dims``.
    :param overwrite: Replace a saved model at ``path``; nothing else is replaced.
    :raises ValueError: If there is something at the path already, an argument is wrong, or
        TensorFlow cannot compile the predictions for any number of rows, such as those of GPflow's
        Softmax.
    :raises OSError: If the folder cannot be written.
    """
    target = as_path(path)
    check_free(target, overwrite=boolean("overwrite", overwrite))
    predictor = saved_predictor(model, likelihood)
    width = _num_columns(predictor, num_columns)
    if isinstance(model, BayesianModel):
        likelihood = model.likelihood
    functions, targets_dtype = _trace(predictor, width, likelihood)
    mean = functions["predict_f_mean"].concrete_function().structured_outputs
    num_outputs = mean.shape[-1]
    if num_outputs is None:
        num_outputs = functions["predict_f_mean"](tf.zeros([1, width], predictor.dtype)).shape[-1]
    metadata = Metadata(
        model=type(model).__name__,
        kernel=None if predictor.kernel is None else type(predictor.kernel).__name__,
        likelihood=None if likelihood is None else type(likelihood).__name__,
        functions=tuple(functions),
        num_columns=width,
        num_outputs=int(num_outputs),
        dtype=predictor.dtype.name,
        targets_dtype=targets_dtype.name,
        row_entries=predictor.row_entries,
        versions=_versions(),
    )

    def write(folder: Path) -> None:
        module = _module_of(functions)
        signatures = {name: _signature(name, traced) for name, traced in functions.items()}
        signatures["serving_default"] = signatures["predict_f"]
        tf.saved_model.save(module, str(folder), signatures=signatures)
        metadata.write(folder)

    write_folder(target, write)


def _num_columns(predictor: Predictor, given: int | None) -> int:
    """:raises ValueError: If it is not known, or is another."""
    known = predictor.num_columns
    if given is not None:
        integer("num_columns", given, at_least=1)
        if known not in (None, given):
            raise ValueError(
                f"num_columns must be {known}, those of the {predictor.kind}, found {given}; leave "
                "it out."
            )
        return given
    if known is None:
        raise ValueError(
            f"num_columns must be the number of columns of X, which the {predictor.kind} does not "
            "know, found None; pass X.shape[1]."
        )
    return known


def _trace(
    predictor: Predictor, num_columns: int, likelihood: Likelihood | None
) -> tuple[dict[str, Traced], tf.DType]:
    """The functions, traced; and the type of Y.

    :raises ValueError: If one that there is cannot be.
    """
    X = tf.TensorSpec([None, num_columns], predictor.dtype, "Xnew")
    functions: dict[str, Traced] = {}

    def trace(name: str, *specs: tf.TensorSpec) -> None:
        traced = predictor.traced(name, *specs)
        traced.concrete_function()
        functions[name] = traced

    with _failure_named(
        f"model: predictions of a {predictor.kind}", "pass a posterior, or the right num_columns"
    ):
        for name in METHODS[:2]:
            trace(name, X)
        with contextlib.suppress(NotImplementedError):
            if FULL_COV in predictor.functions:
                trace(FULL_COV, X)
    targets_dtype = predictor.dtype
    if likelihood is None:
        return functions, targets_dtype
    width = likelihood.observation_dim
    what = f"likelihood: a {type(likelihood).__name__}"
    with _failure_named(what, "pass a posterior without likelihood for predictions of f alone"):
        with contextlib.suppress(NotImplementedError):
            trace("predict_y", X)
        with contextlib.suppress(NotImplementedError):
            targets_dtype = _first_that_works(
                lambda dtype: trace(OF_TARGETS, X, tf.TensorSpec([None, width], dtype, "Y")),
                (predictor.dtype, tf.int64),  # some likelihoods over classes take integers alone
            )
    return functions, targets_dtype


@contextlib.contextmanager
def _failure_named(what: str, remedy: str) -> Iterator[None]:
    """:raises ValueError: In place of what tracing raises."""
    try:
        yield
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"{what} cannot be compiled for any number of rows ({reason}); {remedy}."
        ) from error


def _first_that_works(
    attempt: Callable[[tf.DType], None], dtypes: tuple[tf.DType, ...]
) -> tf.DType:
    """:raises Exception: That of the first, if none works."""
    first: Exception | None = None
    for dtype in dtypes:
        try:
            attempt(dtype)
        except NotImplementedError:
            raise
        except Exception as error:
            first = first or error
        else:
            return dtype
    assert first is not None
    raise first


def _module_of(functions: dict[str, Traced]) -> tf.Module:
    """The functions, and what they use: SavedModel wants it in attributes."""
    module = tf.Module()
    used = [
        variable
        for traced in functions.values()
        for variable in traced.concrete_function().graph.variables
    ]
    module.variables_used = list({id(variable): variable for variable in used}.values())
    for name, traced in functions.items():
        setattr(module, name, traced.function)
    return module


def _signature(name: str, traced: Traced) -> Any:
    """The function with named results, as TensorFlow Serving calls it."""
    function = traced.function
    specs = tf.nest.flatten(traced.concrete_function().structured_input_signature[0])

    def named(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        returned = tf.nest.flatten(function(inputs if name == OF_TARGETS else inputs[0]))
        names = ("log_density",) if name == OF_TARGETS else _RESULTS
        return dict(zip(names, returned, strict=False))

    return compiled(named, input_signature=specs)


def _versions() -> dict[str, str]:
    library = __name__.partition(".")[0]
    return {
        library: sys.modules[library].__version__,
        "gpflow": gpflow.__version__,
        "tensorflow": tf.__version__,
    }
