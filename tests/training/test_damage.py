"""Folders of checkpoints that something happened to: the newest good one is used, or one error."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.training import FitResult, fit
from interdomain.training.checkpoints import CheckpointStore

STEPS, EVERY = 12, 2
DATA, INDEX = "step-8.data-00000-of-00001", "step-8.index"


def store_of(folder: Path, *, seed: int = 0, **options: Any) -> tuple[CheckpointStore, tf.Variable]:
    """A store of numbers that are those of the step, and these numbers."""
    numbers = tf.Variable(tf.zeros(100))
    configuration = {"method": "adam", "data": {"seed": seed}}
    return CheckpointStore(folder, {"numbers": numbers}, configuration, **options), numbers


def started(folder: Path, *, resume: bool = True, **options: Any) -> int:
    """The step that a new store is at; its numbers must be those of this step."""
    store, numbers = store_of(folder, **options)
    try:
        step = store.start(resume)
    finally:
        store.release()
    np.testing.assert_array_equal(numbers, float(step))
    return step


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The folder of a fit that was stopped after step 8."""
    store, numbers = store_of(tmp_path / "kept")
    assert store.start(False) == 0
    for step in (2, 4, 6, 8):
        numbers.assign(tf.fill([100], float(step)))
        store.save(step)
    store.release()
    return tmp_path / "kept"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("step-*"))


def files_of(*steps: int) -> list[str]:
    return sorted(f"step-{step}.{end}" for step in steps for end in (DATA[7:], "index"))


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[str, Callable[[Path], Any], int, str]] = {
    f"{name}, {damage.__name__}": (name, damage, 6, "step-8: ")
    for name in (DATA, INDEX)
    for damage in (halved, zeroed, one_bit, Path.unlink)
} | {
    f"configuration, {case}": ("configuration.json", damage, 8, f"configuration.json is {what}")
    for case, damage, what in [
        ("garbage", lambda path: path.write_bytes(b"\xff\xfe\0"), "damaged"),
        ("halved", halved, "damaged"),
        ("a list", lambda path: path.write_text("[1]"), "damaged"),
        ("missing", Path.unlink, "missing"),
    ]
}


def test_the_newest_good_checkpoint_is_used(kept: Path, tmp_path: Path) -> None:
    """... and said; the next checkpoint replaces the damaged one, and the last three are kept."""
    configuration = (kept / "configuration.json").read_text()
    for case, (name, damage, step, message) in DAMAGES.items():
        folder = tmp_path / "damaged"
        shutil.copytree(kept, folder)
        damage(folder / name)
        store, numbers = store_of(folder)
        with pytest.warns(UserWarning, match=message) as caught:
            assert store.start(True) == step, case
        assert f"goes on from step {step}." in str(caught[0].message), case
        assert str(folder) in str(caught[0].message), case
        np.testing.assert_array_equal(numbers, float(step), err_msg=case)
        assert store.latest == str(folder / f"step-{step}"), case
        assert (folder / "configuration.json").read_text() in (
            configuration,
            json.dumps(json.loads(configuration)),
        ), case
        store.save(step + 1)
        assert names(folder) == files_of(step - 2, step, step + 1), case
        assert tf.train.latest_checkpoint(folder) == str(folder / f"step-{step + 1}"), case
        store.release()
        shutil.rmtree(folder)


def run(model: Any, data: Any, folder: Path, **arguments: Any) -> FitResult:
    settings = {"batch_size": 8, "checkpoint_every": EVERY, "progress": False, "resume": True}
    return fit(model, data, checkpoint_dir=folder, **{**settings, "steps": STEPS, **arguments})


def test_a_fit_goes_on_from_the_newest_good_checkpoint(
    data: Any, make_line: Any, assert_same_bits: Any, tmp_path: Path
) -> None:
    """It ends with the bits of one that was never stopped."""
    whole, resumed = make_line(), make_line()
    run(whole, data, tmp_path / "whole")
    run(make_line(), data, tmp_path / "damaged", steps=8)
    halved(tmp_path / "damaged" / DATA)
    with pytest.warns(UserWarning, match="step-8: .*goes on from step 6"):
        assert run(resumed, data, tmp_path / "damaged").first_step == 6
    assert_same_bits(resumed, whole)
    assert names(tmp_path / "damaged") == files_of(8, 10, 12)


def test_the_file_that_names_the_newest_is_not_needed(kept: Path) -> None:
    for damage in (
        Path.unlink,
        lambda path: path.write_bytes(b"\xff\xfe\0"),
        lambda path: path.write_text("hello {"),
        lambda path: path.write_text(""),
    ):
        damage(kept / "checkpoint")
        assert started(kept) == 8
        with pytest.raises(ValueError, match="already holds the checkpoint .*step-8"):
            started(kept, resume=False)
        (kept / "checkpoint").write_text('model_checkpoint_path: "step-8"')


def test_no_good_checkpoint_is_one_error(kept: Path) -> None:
    before = {path.name: path.read_bytes() for path in kept.glob("*.json")}
    for path in kept.glob("step-*"):
        path.write_bytes(b"")
    with pytest.raises(
        ValueError, match=f"checkpoint_dir: no checkpoint in {kept} can be read .*step-8: .*step-4"
    ):
        started(kept)
    for path in kept.glob("step-*"):
        path.unlink()
    with pytest.raises(ValueError, match="all their files are missing.*pass another directory"):
        started(kept)
    with pytest.raises(ValueError, match="holds the checkpoint of which no file is left"):
        started(kept, resume=False)
    assert {path.name: path.read_bytes() for path in kept.glob("*.json")} == before


def test_a_fit_killed_while_it_wrote_its_first_checkpoint_starts_again(tmp_path: Path) -> None:
    assert started(tmp_path) == 0
    for path in (tmp_path / "step-0.index", tmp_path / "checkpoint"):
        path.unlink()
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / ".unfinished" / "step-0.data-00000-of-00001").write_bytes(b"x")
    with pytest.warns(UserWarning, match="of the start, is damaged .* from step 0"):
        assert started(tmp_path) == 0
    assert not (tmp_path / ".unfinished").exists()
    assert names(tmp_path) == files_of(0)


def test_damage_of_another_fits_checkpoint(kept: Path) -> None:
    """Whose it is can be told without the file that says it."""
    (kept / "configuration.json").unlink()
    with (
        pytest.warns(UserWarning, match="configuration.json is missing"),
        pytest.raises(ValueError, match="another configuration: data/seed was 0, now 1"),
    ):
        started(kept, seed=1)


def test_other_workers_read_what_the_chief_writes(kept: Path) -> None:
    chief, _ = store_of(kept)
    other, numbers = store_of(kept, writes=False)
    assert chief.start(True) == other.start(True) == 8
    np.testing.assert_array_equal(numbers, 8.0)
    other.save(9)
    assert names(kept) == files_of(4, 6, 8)
    chief.save(10)
    assert other.latest == chief.latest == str(kept / "step-10")
    chief.release()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    for folder in (path, path / "inside"):
        with pytest.raises(ValueError, match=f"{folder} is, or lies in, a file; pass a folder"):
            started(folder)
    assert path.read_text() == "mine"


def test_a_folder_that_is_read_only(kept: Path) -> None:
    user = os.geteuid() if hasattr(os, "geteuid") else None
    if user is None:
        pytest.skip("needs POSIX permissions")
    for path in (kept, *kept.iterdir()):
        path.chmod(path.stat().st_mode & ~0o222)
    folders = [folder for folder in kept.parents if folder.stat().st_uid == user]
    modes = {folder: folder.stat().st_mode for folder in folders}
    try:
        if user == 0:  # nothing is read-only for it
            for folder in folders:
                folder.chmod(modes[folder] | 0o055)
            os.seteuid(65534)
        for folder in (kept, kept / "new"):
            with pytest.raises(PermissionError, match=f"checkpoint_dir: {folder}.*cannot be writ"):
                started(folder)
    finally:
        os.seteuid(user)
        for folder, mode in modes.items():
            folder.chmod(mode)


def test_what_cannot_be_written_leaves_the_last_good_one(kept: Path) -> None:
    """When what is in the way is gone, a fit goes on."""
    (kept / "step-10.index").mkdir()  # in the way of the index, which is written last
    store, _ = store_of(kept)
    with pytest.warns(UserWarning, match="passed over .step-10"):
        assert store.start(True) == 8
    with pytest.raises(
        OSError, match=f"the checkpoint of step 10 .*last good one is {kept}/step-8: pass resume=Tr"
    ):
        store.save(10)
    store.release()
    assert not (kept / ".unfinished").exists()
    (kept / "step-10.index").rmdir()
    with pytest.warns(UserWarning, match="passed over .step-10"):
        assert started(kept) == 8


def test_a_disk_that_is_full(kept: Path) -> None:
    """No file may grow beyond 200 bytes: TensorFlow fails as on a full disk."""
    resource = pytest.importorskip("resource")
    store, _ = store_of(kept)
    store.start(True)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        with pytest.raises(OSError, match=f"{kept}: the checkpoint of step 10 could not .*/step-8"):
            store.save(10)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert names(kept) == files_of(4, 6, 8) and not (kept / ".unfinished").exists()
    store.save(10)
    store.release()
    assert names(kept) == files_of(6, 8, 10)


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_is_removed_during_the_fit(tmp_path: Path, again: bool) -> None:
    """Also where another fit has made it again: its checkpoints stay as they are."""
    folder = tmp_path / "run"
    store, _ = store_of(folder)
    store.start(True)
    shutil.rmtree(folder)
    if again:
        started(folder)
    with pytest.raises(FileNotFoundError, match=f"{folder} was removed while the fit ran"):
        store.save(2)
    assert tf.train.latest_checkpoint(folder) == (str(folder / "step-0") if again else None)
    store.release()


def test_two_fits_in_one_folder(data: Any, make_line: Any, tmp_path: Path) -> None:
    found: list[str] = []
    other = make_line()

    def intrude(step: int, model: Any) -> None:
        with pytest.raises(ValueError, match="in use by another fit") as caught:
            run(other, data, tmp_path)
        found.append(str(caught.value))

    run(make_line(), data, tmp_path, steps=EVERY, callbacks=[intrude], callback_every=1)
    assert len(found) == EVERY
    assert f"process {os.getpid()} on " in found[0] and "pass another folder" in found[0]
    # A fit that ended, well or not, holds nothing.
    with pytest.raises(ValueError, match="another configuration"):
        run(other, data, tmp_path, seed=1)
    assert run(other, data, tmp_path).first_step == EVERY
