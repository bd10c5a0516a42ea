"""What a fit needs before its first step: the variables to update, checkpoints, and a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gpflow
import tensorflow as tf

from .arguments import FitArguments
from .batches import Batches
from .checkpoints import Checkpoints
from .natural_gradients import natural_gradients
from .progress import Recorder
from .replicas import Replicas
from .settings import Updates, gradient_updates, lbfgs_updates


@dataclass(frozen=True, eq=False)
class Preparation:
    """
    Everything that the steps of a fit need.

    :ivar arguments: the checked arguments of the fit.
    :ivar updates: the variables to train, and how.
    :ivar store: the checkpoints, none of which has been read or written yet.
    :ivar ended: the reason for which L-BFGS has ended, "" before; kept in the checkpoints.
    """

    model: Any
    arguments: FitArguments
    batches: Batches
    replicas: Replicas
    updates: Updates
    store: Checkpoints
    ended: tf.Variable

    def recorder(self, first_step: int) -> Recorder:
        """The record of the steps after ``first_step``; only the chief shows a progress bar."""
        return Recorder(
            self.model,
            first_step=first_step,
            steps=self.arguments.steps,
            exact=self.batches.exact,
            callbacks=self.arguments.callbacks,
            callback_every=self.arguments.callback_every,
            progress=self.arguments.progress and self.replicas.workers.is_chief,
        )


def prepare(
    model: Any, arguments: FitArguments, batches: Batches, replicas: Replicas
) -> Preparation:
    """
    Choose what is updated, make the optimizer, and describe the fit for its checkpoints.

    :raises ValueError: if there is nothing to train, or the optimizer cannot train it.
    """
    if arguments.full_batch:
        updates = lbfgs_updates(model)
        settings = {
            "options": dict(arguments.options or {}),
            "checkpoint_every": arguments.checkpoint_every,
        }
    else:
        with replicas.scope():
            updates = gradient_updates(
                model,
                optimizer=arguments.optimizer,
                learning_rate=arguments.learning_rate,
                natural=natural_gradients(
                    model,
                    arguments.natural_gradient,
                    own_optimizer=arguments.optimizer is not None,
                    alternate=arguments.alternate,
                ),
            )
        replicas.check_optimizer(updates.optimizer)
        settings = updates.describe()
    ended = tf.Variable("", trainable=False)
    store = Checkpoints(
        arguments.checkpoint_dir,
        arguments.resume,
        fit=_described(
            {
                "model": type(model).__name__,
                "method": arguments.method,
                **_describe_parameters(model),
                **batches.describe(),
                **settings,
            }
        ),
        writes=replicas.workers.is_chief,
        model=model,
        ended=ended,
        **updates.stored(),
    )
    return Preparation(model, arguments, batches, replicas, updates, store, ended)


def _described(settings: dict[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in settings.items())


def _describe_parameters(model: gpflow.models.BayesianModel) -> dict[str, str]:
    return {
        path: f"{parameter.dtype.name} {list(parameter.shape)}"
        + ("" if parameter.trainable else ", not trainable")
        for path, parameter in gpflow.utilities.parameter_dict(model).items()
    }
