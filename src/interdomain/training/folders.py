"""A folder of checkpoints, which one fit locks, and whose files are written completely or not."""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

try:
    import fcntl
except ImportError:  # Windows: a folder is then not protected from a second process
    fcntl = None  # type: ignore[assignment]

_STEP = re.compile(r"step-(\d+)\.(?:index|data-\d+-of-\d+)")
_LOCK, _UNFINISHED, _NEWEST = ".lock", ".unfinished", "checkpoint"
_HELD_BY_ANOTHER = (errno.EWOULDBLOCK, errno.EACCES)


class CheckpointFolder:
    """
    The folder of the checkpoints ``step-<number>`` of one fit.

    Checkpoints are found by the names of their files. The file ``checkpoint``, which names the
    newest, is written for ``tf.train.latest_checkpoint`` and never read here.

    :param path: the path of the folder, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def hold(self) -> None:
        """
        Make the folder if it does not exist, and lock it against other processes.

        The operating system holds the lock and removes it when the process ends in any way; the
        locked file stays. On file systems without locks there is no protection.

        :raises ValueError: if another fit has locked the folder, or the path is that of a file.
        :raises OSError: if the folder cannot be written to.
        """
        with self._errors_named("it cannot be written to", "Pass one that can."):
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except (FileExistsError, NotADirectoryError) as error:
                raise ValueError(
                    f"checkpoint_dir: {self.path} is, or lies in, a file; pass a folder."
                ) from error
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._take(lock)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock

    def _take(self, lock: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD_BY_ANOTHER:
                return  # a file system without locks
            holder = os.pread(lock, 1000, 0).decode(errors="replace") or "unknown"
            raise ValueError(
                f"checkpoint_dir: {self.path} is in use by another fit ({holder}); pass another "
                "folder, or wait until it ends."
            ) from error
        with self._errors_named("it cannot be written to", "Free some space."):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def release(self) -> None:
        """Remove the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def newest_named(self) -> bool:
        """Whether there has ever been a checkpoint, by this library or another program."""
        return (self.path / _NEWEST).exists()

    def steps(self) -> list[int]:
        """The steps of all checkpoints that have at least one file, the newest first."""
        names = (path.name for path in self.path.glob("step-*"))
        found = {int(match.group(1)) for match in map(_STEP.fullmatch, names) if match}
        return sorted(found, reverse=True)

    def prefix(self, step: int) -> str:
        """TensorFlow's prefix of a checkpoint: the path of its files without the endings."""
        return str(self.path / f"step-{step}")

    def damage(self, step: int) -> str | None:
        """Why a checkpoint cannot be read, in words; None if every number in it can be read."""
        try:
            prefix = self.prefix(step)
            dtypes = tf.train.load_checkpoint(prefix).get_variable_to_dtype_map()
            for name, dtype in dtypes.items():  # checksums are compared
                tf.raw_ops.RestoreV2(
                    prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype]
                )
        except Exception as error:  # TensorFlow's own, IndexError, RuntimeError, ...
            return str(error).splitlines()[0] if str(error) else type(error).__name__
        return None

    def write(
        self, step: int, write: Callable[[str], object], *, keep: int, last: str | None
    ) -> None:
        """
        Add a checkpoint, completely or not at all. Then remove all but the last ``keep``, and also
        later ones, which were found damaged.

        :param write: called with the prefix to write to.
        :param last: the checkpoint from which to continue if this one cannot be written.
        :raises OSError: if it cannot be written; earlier checkpoints are unchanged.
        """
        self._check_present()
        kept_as_is = f"The last good one is {last}: pass resume=True to go on from it."
        remedy = "Pass another folder." if last is None else kept_as_is
        with self._errors_named(f"the checkpoint of step {step} could not be written", remedy):
            unfinished = self.path / _UNFINISHED
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
            try:
                unfinished.mkdir()
                write(str(unfinished / f"step-{step}"))
                # The index last: without it there is no checkpoint.
                for file in sorted(unfinished.glob("step-*")):
                    _to_disk(file)
                    file.replace(self.path / file.name)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
            kept = [number for number in self.steps() if number <= step][:keep]
            lines = [f'model_checkpoint_path: "step-{step}"']
            lines += [f'all_model_checkpoint_paths: "step-{number}"' for number in reversed(kept)]
            self._write_text(_NEWEST, "".join(f"{line}\n" for line in lines))
            for number in set(self.steps()) - set(kept):
                for file in self.path.glob(f"step-{number}.*"):
                    file.unlink(missing_ok=True)

    def write_text(self, name: str, text: str) -> None:
        """
        Write a file, completely or not at all.

        :raises OSError: if the file cannot be written.
        """
        with self._errors_named(f"{name} could not be written", "Pass another folder."):
            self._write_text(name, text)

    def _write_text(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.tmp"
        temporary.write_text(text)
        _to_disk(temporary)
        temporary.replace(self.path / name)

    def _check_present(self) -> None:
        """Raise an error if the folder was removed, even if a new one has been made since."""
        assert self._lock is not None, "only who holds it writes"
        try:
            present = os.path.samestat(os.stat(self.path / _LOCK), os.fstat(self._lock))
        except FileNotFoundError:
            present = False
        if not present:
            raise FileNotFoundError(
                errno.ENOENT,
                f"checkpoint_dir: {self.path} was removed while the fit ran, with its checkpoints; "
                "pass another folder to start again (the model has the parameters of the last "
                "step)",
            )

    @contextmanager
    def _errors_named(self, what: str, remedy: str) -> Iterator[None]:
        try:
            yield
        except (OSError, tf.errors.OpError) as error:
            number, reason = None, str(error).splitlines()[0].split("}} ")[-1]
            if isinstance(error, OSError) and error.strerror:
                number, reason = error.errno, error.strerror
            message = f"checkpoint_dir: {self.path}: {what} ({reason}). {remedy}"
            raise (OSError(message) if number is None else OSError(number, message)) from error


def _to_disk(path: Path) -> None:
    """Flush a file to disk: one that is renamed earlier may be empty after a loss of power."""
    with path.open("r+b") as file:
        os.fsync(file.fileno())
