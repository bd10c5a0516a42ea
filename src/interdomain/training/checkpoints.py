"""The checkpoints of a fit: written, found again, and checked to belong to the same fit."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import tensorflow as tf

from .folders import CheckpointFolder

Configuration = dict[str, Any]

_CONFIGURATION_FILE = "configuration.json"
_STORED_CONFIGURATION = "configuration/.ATTRIBUTES/VARIABLE_VALUE"
_KEPT = 3


class CheckpointStore:
    """
    The last three checkpoints of one fit, in ``directory``; nothing is stored if that is None.

    A checkpoint holds ``objects``, the step, how the fit ended, and the configuration: plain JSON
    data that identify the fit. The file ``configuration.json`` holds the configuration as well, for
    people to read.

    :param writes: whether this process writes the checkpoints, or only reads those of another.
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
        self._folder = None if directory is None else CheckpointFolder(Path(directory))
        self._last: int | None = None
        if self._folder is None:
            return
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._status = tf.Variable(self._RUNNING, dtype=tf.int64, trainable=False)
        restored = {"step": self._step, "status": self._status, **objects}
        self._reader = tf.train.Checkpoint(**restored)
        self._writer = tf.train.Checkpoint(
            **restored, configuration=tf.Variable(json.dumps(configuration), trainable=False)
        )
        _ = self._writer.save_counter  # made here: tf.train.Checkpoint.restore looks for it

    @property
    def latest(self) -> str | None:
        """The path of the last good checkpoint."""
        if self._folder is None:
            return None
        last = self._last if self._writes else next(iter(self._folder.steps()), None)
        return None if last is None else self._folder.prefix(last)

    def start(self, resume: bool) -> int:
        """
        Restore the newest good checkpoint; if there is none, write the first one. Until
        :meth:`release`, no other fit can use the directory.

        The first checkpoint is written before the first step, so that there is always a good one to
        return to, and so that an object that cannot be stored is found before time is spent.

        :returns: the step that the fit is at.
        :raises ValueError: if there is a checkpoint but ``resume`` is False, if the checkpoint has
            another configuration, if no checkpoint can be read, if another fit writes to the
            directory, or if an object cannot be stored.
        :raises OSError: if the directory cannot be written to.
        """
        folder = self._folder
        if folder is None:
            return 0
        if self._writes:
            folder.hold()
        steps = folder.steps()
        if not steps and not folder.newest_named:
            self._write_first()
            return 0
        if not resume:
            newest = folder.prefix(steps[0]) if steps else "of which no file is left"
            raise ValueError(
                f"checkpoint_dir: {folder.path} already holds the checkpoint {newest}; "
                "pass resume=True to continue from it, or another directory."
            )
        return self._restore_newest_good(folder, steps)

    def release(self) -> None:
        """Let other fits use the directory."""
        if self._folder is not None:
            self._folder.release()

    def save(self, step: int, *, converged: bool = False, stopped: bool = False) -> None:
        """
        Write a checkpoint of ``step``, whose parameters must have a finite loss.

        :raises OSError: if it cannot be written; the last good checkpoint is still there.
        """
        if self._folder is None or not self._writes:
            return
        status = self._CONVERGED if converged else self._STOPPED if stopped else self._RUNNING
        self._step.assign(step)
        self._status.assign(status)
        self._folder.write(step, self._write, keep=_KEPT, last=self.latest)
        self._last = step

    @property
    def converged(self) -> bool:
        """Whether the restored fit had met its tolerances."""
        return self._folder is not None and int(self._status) == self._CONVERGED

    @property
    def stopped(self) -> bool:
        """Whether the restored fit had stalled: it found no better point."""
        return self._folder is not None and int(self._status) == self._STOPPED

    def _write_first(self) -> None:
        if self._folder is not None and self._writes:
            self._folder.write_text(_CONFIGURATION_FILE, json.dumps(self._configuration, indent=1))
            self.save(0)

    def _write(self, prefix: str) -> None:
        try:
            self._writer.write(prefix)
        except tf.errors.FailedPreconditionError as error:
            if "is stateful" not in str(error):
                raise
            raise ValueError(
                "data: the position in this Dataset cannot be stored in a checkpoint "
                f"({error.message.split('}} ')[-1]}); build the Dataset without Python functions, "
                "generators and unseeded random operations, pass arrays, or leave out "
                "checkpoint_dir."
            ) from error

    def _restore_newest_good(self, folder: CheckpointFolder, steps: Sequence[int]) -> int:
        damages: list[str] = []
        for step in steps:
            damage = folder.damage(step)
            if damage is None:
                break
            damages.append(f"step-{step}: {damage}")
        else:
            if steps == [0] and self._writes:  # killed while it was written: nothing was done
                _warn(folder, f"its only checkpoint, of the start, is damaged ({damages[0]})", 0)
                self._write_first()
                return 0
            self._refuse(folder, damages)
        if damages:
            _warn(folder, f"damaged checkpoints are passed over ({'; '.join(damages)})", step)
        self._check_configuration(folder, step)
        status = self._reader.restore(folder.prefix(step))
        status.assert_existing_objects_matched().expect_partial()
        self._last = step
        return step

    def _refuse(self, folder: CheckpointFolder, damages: Sequence[str]) -> NoReturn:
        if not damages and not (folder.path / _CONFIGURATION_FILE).exists():
            raise _not_ours(folder)
        found = "; ".join(damages) or "all their files are missing"
        raise ValueError(
            f"checkpoint_dir: no checkpoint in {folder.path} can be read ({found}). Put back a "
            "copy of the folder if there is one; otherwise pass another directory, or empty this "
            "one, to start again."
        )

    def _check_configuration(self, folder: CheckpointFolder, step: int) -> None:
        found = _leaves(self._written_configuration(folder, step))
        wanted = _leaves(json.loads(json.dumps(self._configuration)))
        differences = [
            f"{key} was {found.get(key)}, now {wanted.get(key)}"
            for key in wanted | found
            if found.get(key) != wanted.get(key)
        ]
        if differences:
            raise ValueError(
                f"checkpoint_dir: {folder.path} holds a checkpoint of another configuration: "
                f"{'; '.join(differences)}. Pass what was passed then, or another directory."
            )

    def _written_configuration(self, folder: CheckpointFolder, step: int) -> Configuration:
        """The stored configuration, from its file; if that is damaged, from the checkpoint, and the
        file is written again."""
        path = folder.path / _CONFIGURATION_FILE
        try:
            found: Configuration = dict(json.loads(path.read_text()))
            return found
        except FileNotFoundError:
            damage = "is missing"
        except (OSError, TypeError, ValueError) as error:
            damage = f"is damaged: {error}"
        reader = tf.train.load_checkpoint(folder.prefix(step))
        if not reader.has_tensor(_STORED_CONFIGURATION):
            raise _not_ours(folder)
        text = reader.get_tensor(_STORED_CONFIGURATION).decode()
        _warn(folder, f"{path.name} {damage}; what the checkpoint has of it is used", step)
        if self._writes:
            folder.write_text(path.name, text)
        found = json.loads(text)
        return found


def _not_ours(folder: CheckpointFolder) -> ValueError:
    return ValueError(
        f"checkpoint_dir: {folder.path} holds a checkpoint that training.fit did not write (no "
        f"readable {_CONFIGURATION_FILE} beside it); pass another directory."
    )


def _warn(folder: CheckpointFolder, what: str, step: int) -> None:
    warnings.warn(
        f"checkpoint_dir: {folder.path}: {what}; the fit goes on from step {step}.", stacklevel=2
    )


def _leaves(nested: Any, path: str = "") -> dict[str, Any]:
    """All values in nested mappings, by their paths."""
    if not isinstance(nested, dict):
        return {path: nested}
    return {
        inner: leaf
        for key, value in nested.items()
        for inner, leaf in _leaves(value, f"{path}/{key}" if path else key).items()
    }
