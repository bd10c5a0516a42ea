"""Folders of checkpoints that something happened to: the newest good one is used, or one error."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain import fit
from interdomain.training.checkpoints import Checkpoints

DATA, INDEX = "step-8.data-00000-of-00001", "step-8.index"


def opened(
    folder: Path, seed: int = 0, before: str = "", **options: Any
) -> tuple[Checkpoints, tf.Variable]:
    """Checkpoints of numbers that are those of the step, and these numbers."""
    numbers = tf.Variable(tf.zeros(100))
    fit = f"{before}method: adam\nseed: {seed}"
    return Checkpoints(folder, fit=fit, numbers=numbers, **options), numbers


def restored(folder: Path, **options: Any) -> int:
    """The step of the newest checkpoint; the numbers must be those of this step."""
    checkpoints, numbers = opened(folder, **options)
    assert checkpoints.restore()
    assert checkpoints.latest == str(folder / f"step-{checkpoints.step}")
    np.testing.assert_array_equal(numbers, float(checkpoints.step))
    return checkpoints.step


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder of a fit that was stopped after step 8."""
    checkpoints, numbers = opened(tmp_path / "kept")
    assert not checkpoints.restore()
    for step in (0, 2, 4, 6, 8):
        numbers.assign(tf.fill([100], float(step)))
        checkpoints.save(step)
    return tmp_path / "kept"


def steps(folder: Path) -> list[int]:
    """The steps of the files in the folder, which holds nothing else."""
    return sorted(int(path.stem.partition("-")[2]) for path in folder.glob("step-*.index"))


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_newest_good_checkpoint_is_used(kept: Path, tmp_path: Path) -> None:
    """... and said; the next checkpoint replaces the damaged one, and the last three are kept."""
    damages: list[tuple[str, Callable[[Path], Any]]]
    damages = [(DATA, halved), (DATA, one_bit), (INDEX, Path.unlink)]
    for name, damage in damages:
        folder = tmp_path / "damaged"
        shutil.copytree(kept, folder)
        for path in folder.glob("checkpoint"):  # it names the files with their folder
            path.write_text(path.read_text().replace(str(kept), str(folder)))
        damage(folder / name)
        with pytest.warns(UserWarning, match="skipped .step-8: .* resumes from step 6."):
            assert restored(folder) == 6, (name, damage)
        checkpoints, numbers = opened(folder)
        with pytest.warns(UserWarning, match=str(folder)):
            assert checkpoints.restore()
        numbers.assign(tf.fill([100], 8.0))
        checkpoints.save(8)
        assert steps(folder) == [4, 6, 8]
        assert restored(folder) == 8
        assert tf.train.latest_checkpoint(folder) == str(folder / "step-8")
        shutil.rmtree(folder)


def test_a_fit_goes_on_from_the_newest_good_checkpoint(
    data: Any, make_line: Any, assert_same_bits: Any, tmp_path: Path
) -> None:
    """It ends with the bits of one that was never stopped."""

    def run(model: Any, folder: Path, steps: int = 12) -> int:
        settings = {"batch_size": 8, "options": {"every": 2}, "progress": False}
        return fit(model, data, steps=steps, checkpoint_dir=folder, **settings).first_step

    whole, resumed = make_line(), make_line()
    run(whole, tmp_path / "whole")
    run(make_line(), tmp_path / "damaged", steps=8)
    halved(tmp_path / "damaged" / DATA)
    with pytest.warns(UserWarning, match="step-8: .*resumes from step 6"):
        assert run(resumed, tmp_path / "damaged") == 6
    assert_same_bits(resumed, whole)
    assert steps(tmp_path / "damaged") == [8, 10, 12]


def test_tensorflows_list_of_checkpoints_is_not_needed(kept: Path) -> None:
    """Nor do other files in the folder mislead; they are left alone."""
    for damage in (zeroed, lambda path: path.write_text("hello {"), Path.unlink):
        content = (kept / "checkpoint").read_bytes()
        damage(kept / "checkpoint")
        assert restored(kept) == 8
        (kept / "checkpoint").write_bytes(content)
    for name in ("step-old.index", "step-8.index.bak", "step--1.index", "step-.index"):
        (kept / name).write_text("mine")
    assert restored(kept) == 8
    (kept / "checkpoint").unlink()
    assert restored(kept) == 8
    assert (kept / "step-old.index").read_text() == "mine"


def test_folders_that_are_refused(kept: Path, tmp_path: Path) -> None:
    """Folders of another fit, of another program, of nothing that can be read; and files."""
    with pytest.raises(ValueError, match="of another fit .seed: 0; now seed: 1.; pass what was"):
        opened(kept, seed=1)[0].restore()
    with pytest.raises(ValueError, match="of another version .*; pass another folder. tf.train.Ch"):
        opened(kept, before="format: 2\n")[0].restore()
    many = "".join(f"line {number}: 0\n" for number in range(9))
    with pytest.raises(ValueError, match="; now line 0: 0; .*line 3: 0; 5 more.; pass what was"):
        opened(kept, before=many)[0].restore()
    other = tf.train.Checkpoint(numbers=tf.Variable(0.0))
    tf.train.CheckpointManager(other, str(tmp_path / "other"), max_to_keep=1).save()
    with pytest.raises(ValueError, match="was not written by a fit; now .*pass .* another folder"):
        opened(tmp_path / "other")[0].restore()
    for path in kept.glob("step-*"):
        zeroed(path)
    with pytest.raises(ValueError, match=f"no checkpoint in {kept} can be read .step-8.*step-4"):
        opened(kept)[0].restore()
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(OSError, match=str(tmp_path / "file")):
            opened(folder)


def test_a_disk_that_is_full(kept: Path) -> None:
    """No file may grow beyond 200 bytes: TensorFlow fails as on a full disk."""
    resource = pytest.importorskip("resource")
    checkpoints, numbers = opened(kept)
    checkpoints.restore()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        with pytest.raises(OSError, match=f"{kept}: the checkpoint of step 10 was not .*/step-8, "):
            checkpoints.save(10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert restored(kept) == 8 and not list(kept.glob("*_temp"))
    numbers.assign(tf.fill([100], 10.0))
    checkpoints.save(10)
    assert steps(kept) == [6, 8, 10] and restored(kept) == 10
