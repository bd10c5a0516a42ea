"""Checkpoints of a fit: written whole, found again, and refused when they are another fit's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

Configuration = dict[str, Any]

_CONFIGURATION_FILE = "configuration.json"


class CheckpointStore:
    """
    The checkpoints of one fit, the last three of them, in ``directory``; without a directory it
    stores nothing.

    Each holds ``objects``, the step and how the fit ended. ``configuration.json`` beside them says
    whose they are; it must be plain JSON data.

    :param writes: whether this process writes them; one that does not reads what another wrote.
    """

    _RUNNING, _CONVERGED, _STOPPED = range(3)

    def __init__(
        self,
        directory: str | os.PathLike[str] | None,
        objects: Mapping[str, Any],
        configuration: Configuration,
        *,
        writes: bool = True,
    ) -> None:
        self._writes = writes
        self._configuration = configuration
        self._directory = None if directory is None else Path(directory)
        if self._directory is None:
            return
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._status = tf.Variable(self._RUNNING, dtype=tf.int64, trainable=False)
        self._checkpoint = tf.train.Checkpoint(step=self._step, status=self._status, **objects)
        self._manager = tf.train.CheckpointManager(
            self._checkpoint, str(self._directory), max_to_keep=3, checkpoint_name="step"
        )

    @property
    def latest(self) -> str | None:
        """The path of the last checkpoint."""
        if self._directory is None:
            return None
        path: str | None = (
            self._manager.latest_checkpoint
            if self._writes
            else tf.train.latest_checkpoint(str(self._directory))  # another process writes
        )
        return path

    def start(self, resume: bool) -> int:
        """
        Restore the last checkpoint if there is one, otherwise write the first.

        Writing one before the first step means that there always is a good one to go back to, and
        that what cannot be stored is found before any time is spent.

        :returns: the step the fit is at.
        :raises ValueError: if there is a checkpoint and ``resume`` is False, or it is another
            configuration's, or something cannot be stored.
        """
        if self._directory is None:
            return 0
        if self.latest is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._write_configuration(self._directory / _CONFIGURATION_FILE)
            self._write_first()
            return 0
        if not resume:
            raise ValueError(
                f"checkpoint_dir: {self._directory} already holds the checkpoint {self.latest}; "
                "pass resume=True to continue from it, or another directory."
            )
        self._check_configuration(self._directory / _CONFIGURATION_FILE)
        self._checkpoint.restore(self.latest).assert_existing_objects_matched()
        return int(self._step)

    def save(self, step: int, *, converged: bool = False, stopped: bool = False) -> None:
        """Write a checkpoint of ``step``, which must be good."""
        if self._directory is None or not self._writes:
            return
        status = self._CONVERGED if converged else self._STOPPED if stopped else self._RUNNING
        self._step.assign(step)
        self._status.assign(status)
        self._manager.save(checkpoint_number=step)

    @property
    def converged(self) -> bool:
        """Whether the restored fit had met its tolerances."""
        return self._directory is not None and int(self._status) == self._CONVERGED

    @property
    def stopped(self) -> bool:
        """Whether the restored fit had come to a point it could not improve on."""
        return self._directory is not None and int(self._status) == self._STOPPED

    def _write_first(self) -> None:
        try:
            self.save(0)
        except tf.errors.FailedPreconditionError as error:
            if "is stateful" not in str(error):
                raise
            raise ValueError(
                "data: the position in this Dataset cannot be stored in a checkpoint "
                f"({error.message.split('}} ')[-1]}); build the Dataset without Python functions, "
                "generators and unseeded random operations, pass arrays, or leave out "
                "checkpoint_dir."
            ) from error

    def _write_configuration(self, path: Path) -> None:
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self._configuration, indent=1))
        temporary.replace(path)

    def _check_configuration(self, path: Path) -> None:
        if not path.exists():
            raise ValueError(
                f"checkpoint_dir: {path.parent} holds a checkpoint that training.fit did not "
                f"write (no {path.name} beside it); pass another directory."
            )
        found = _leaves(json.loads(path.read_text()))
        wanted = _leaves(json.loads(json.dumps(self._configuration)))
        differences = [
            f"{key} was {found.get(key)}, now {wanted.get(key)}"
            for key in wanted | found
            if found.get(key) != wanted.get(key)
        ]
        if differences:
            raise ValueError(
                f"checkpoint_dir: {path.parent} holds a checkpoint of another configuration: "
                f"{'; '.join(differences)}. Pass what was passed then, or another directory."
            )


def _leaves(nested: Any, path: str = "") -> dict[str, Any]:
    """Every value in nested mappings, by its path."""
    if not isinstance(nested, dict):
        return {path: nested}
    return {
        inner: leaf
        for key, value in nested.items()
        for inner, leaf in _leaves(value, f"{path}/{key}" if path else key).items()
    }
