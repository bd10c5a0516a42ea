"""Folders of checkpoints that something happened to: the newest good one is used, or one error."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.training import FitResult, fit
from tests.workers import UNCHECKED

STEPS, EVERY = 12, 2
DATA, INDEX = "step-8.data-00000-of-00001", "step-8.index"


def run(model: Any, data: Any, folder: Path, **arguments: Any) -> FitResult:
    settings = {"batch_size": 8, "checkpoint_every": EVERY, "progress": False, "resume": True}
    return fit(model, data, checkpoint_dir=folder, **{**settings, "steps": STEPS, **arguments})


@pytest.fixture
def kept(data: Any, make_line: Any, tmp_path: Path) -> Path:
    """The folder of a fit that was stopped after step 8."""
    run(make_line(), data, tmp_path / "kept", steps=8)
    return tmp_path / "kept"


def halved(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, tuple[str, Callable[[Path], None], int, str]] = {
    f"{name}, {damage.__name__}": (name, damage, 6, "step-8: ")
    for name in (DATA, INDEX)
    for damage in (halved, zeroed, one_bit, Path.unlink)
} | {
    "configuration, garbage": (
        "configuration.json",
        lambda path: path.write_bytes(b"\xff\xfe\0"),
        8,
        "configuration.json is damaged",
    ),
    "configuration, halved": ("configuration.json", halved, 8, "configuration.json is damaged"),
    "configuration, a list": (
        "configuration.json",
        lambda path: path.write_text("[1]"),
        8,
        "configuration.json is damaged",
    ),
    "configuration, missing": (
        "configuration.json",
        Path.unlink,
        8,
        "configuration.json is missing",
    ),
}


def test_the_newest_good_checkpoint_is_used(
    data: Any, make_line: Any, kept: Path, assert_same_bits: Any, tmp_path: Path
) -> None:
    """... and said; the fit ends with the bits of one that was never stopped."""
    whole, resumed = make_line(), make_line()
    run(whole, data, tmp_path / "whole")
    configuration = (kept / "configuration.json").read_text()
    for case, (name, damage, first_step, message) in DAMAGES.items():
        folder = tmp_path / "damaged"
        shutil.copytree(kept, folder)
        damage(folder / name)
        with pytest.warns(UserWarning, match=message) as caught:
            result = run(resumed, data, folder)
        assert f"goes on from step {first_step}." in str(caught[0].message), case
        assert str(folder) in str(caught[0].message), case
        assert result.first_step == first_step, case
        assert_same_bits(resumed, whole)
        assert (folder / "configuration.json").read_text() in (
            configuration,
            json.dumps(json.loads(configuration)),
        ), case
        assert sorted(path.name for path in folder.glob("*.index")) == [
            "step-10.index",
            "step-12.index",
            "step-8.index",
        ], case
        assert tf.train.latest_checkpoint(folder) == str(folder / "step-12"), case
        shutil.rmtree(folder)


def test_the_file_that_names_the_newest_is_not_needed(
    data: Any, make_line: Any, kept: Path
) -> None:
    model = make_line()
    for case, damage in {
        "missing": Path.unlink,
        "garbage": lambda path: path.write_bytes(b"\xff\xfe\0"),
        "text": lambda path: path.write_text("hello {"),
        "empty": lambda path: path.write_text(""),
    }.items():
        damage(kept / "checkpoint")
        result = run(model, data, kept, steps=8)
        assert (result.first_step, len(result.elbos)) == (8, 0), case
        with pytest.raises(ValueError, match="already holds the checkpoint .*step-8"):
            run(model, data, kept, resume=False)
        (kept / "checkpoint").write_text('model_checkpoint_path: "step-8"')


def test_no_good_checkpoint_is_one_error(data: Any, make_line: Any, kept: Path) -> None:
    model = make_line()
    before = {path.name: path.read_bytes() for path in kept.glob("*.json")}
    for path in kept.glob("step-*"):
        path.write_bytes(b"")
    with pytest.raises(
        ValueError, match=f"checkpoint_dir: no checkpoint in {kept} can be read .*step-8: .*step-4"
    ):
        run(model, data, kept)
    for path in kept.glob("step-*"):
        path.unlink()
    with pytest.raises(ValueError, match="all their files are missing.*pass another directory"):
        run(model, data, kept)
    assert {path.name: path.read_bytes() for path in kept.glob("*.json")} == before
    assert np.all(model.weights.numpy() == 0)


def test_a_fit_killed_while_it_wrote_its_first_checkpoint_starts_again(
    data: Any, make_line: Any, tmp_path: Path
) -> None:
    run(make_line(), data, tmp_path, steps=1)
    for path in [*tmp_path.glob("step-1.*"), tmp_path / "step-0.index", tmp_path / "checkpoint"]:
        path.unlink()
    (tmp_path / ".unfinished").mkdir()
    (tmp_path / ".unfinished" / "step-0.data-00000-of-00001").write_bytes(b"x")
    with pytest.warns(UserWarning, match="of the start, is damaged .* from step 0"):
        assert run(make_line(), data, tmp_path).first_step == 0
    assert not (tmp_path / ".unfinished").exists()


def test_damage_of_another_fits_checkpoint(data: Any, make_line: Any, kept: Path) -> None:
    """Whose it is can be told without the file that says it."""
    (kept / "configuration.json").unlink()
    with (
        pytest.warns(UserWarning, match="configuration.json is missing"),
        pytest.raises(ValueError, match="another configuration: data/seed was 0, now 1"),
    ):
        run(make_line(), data, kept, seed=1)


def test_a_file_where_the_folder_should_be(data: Any, make_line: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    for folder in (path, path / "inside"):
        with pytest.raises(ValueError, match=f"{folder} is, or lies in, a file; pass a folder"):
            run(make_line(), data, folder)
    assert path.read_text() == "mine"


def test_a_folder_that_is_read_only(data: Any, make_line: Any, kept: Path) -> None:
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
        for folder, message in ((kept, "cannot be written"), (kept / "new", "cannot be written")):
            with pytest.raises(PermissionError, match=f"checkpoint_dir: {folder}.*{message}"):
                run(make_line(), data, folder)
    finally:
        os.seteuid(user)
        for folder, mode in modes.items():
            folder.chmod(mode)


def test_what_cannot_be_written_leaves_the_last_good_one(
    data: Any, make_line: Any, kept: Path, assert_same_bits: Any, tmp_path: Path
) -> None:
    """As where the disk is full; when that is mended, the fit goes on."""
    (kept / "step-10.index").mkdir()  # in the way of the index, which is written last
    found = f"the checkpoint of step 10 .*last good one is {kept}/step-8: pass resume=True"
    with (
        pytest.warns(UserWarning, match="passed over .step-10"),
        pytest.raises(OSError, match=found),
    ):
        run(make_line(), data, kept)
    assert not (kept / ".unfinished").exists()
    (kept / "step-10.index").rmdir()
    whole, resumed = make_line(), make_line()
    run(whole, data, tmp_path / "whole")
    with pytest.warns(UserWarning, match="passed over .step-10"):
        assert run(resumed, data, kept).first_step == 8
    assert_same_bits(resumed, whole)


@pytest.mark.parametrize("again", [False, True])
def test_a_folder_that_is_removed_during_the_fit(
    data: Any, make_line: Any, tmp_path: Path, again: bool
) -> None:
    """Also where another fit has made it again: its checkpoints stay as they are."""
    folder = tmp_path / "run"
    other = make_line()

    def remove(step: int, model: Any) -> None:
        if step == 3:
            shutil.rmtree(folder)
            if again:
                run(other, data, folder, steps=1)

    with pytest.raises(FileNotFoundError, match=f"{folder} was removed while the fit ran"):
        run(make_line(), data, folder, callbacks=[remove], callback_every=1)
    assert tf.train.latest_checkpoint(folder) == (str(folder / "step-1") if again else None)


def test_two_fits_in_one_folder(data: Any, make_line: Any, tmp_path: Path) -> None:
    found: list[str] = []
    other = make_line()

    def intrude(step: int, model: Any) -> None:
        with pytest.raises(ValueError, match="in use by another fit") as caught:
            run(other, data, tmp_path)
        found.append(str(caught.value))

    result = run(make_line(), data, tmp_path, callbacks=[intrude], callback_every=EVERY)
    assert result.steps == STEPS and len(found) == STEPS // EVERY
    assert f"process {os.getpid()} on " in found[0] and "pass another folder" in found[0]
    # A fit that ended, well or not, holds nothing.
    with pytest.raises(ValueError, match="another configuration"):
        run(other, data, tmp_path, seed=1)
    assert run(other, data, tmp_path).first_step == STEPS


SCRIPT = """
    import resource, sys, time
    import numpy as np, gpflow
    from interdomain.training import fit

    X = np.random.default_rng(0).normal(size=(40, 2))
    points = gpflow.inducing_variables.InducingPoints(X[:5].copy())
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Gaussian(), points, num_data=40
    )

    def act(step, model):
        if sys.argv[2] == "wait" and step == 3:
            print("waiting", flush=True)
            time.sleep(600)
        if sys.argv[2] == "full" and step == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))

    try:
        fit(model, (X, X[:, :1]), batch_size=8, steps=6, checkpoint_dir=sys.argv[1],
            checkpoint_every=2, callbacks=[act], callback_every=1, progress=False, resume=True)
    except OSError as error:
        print(error)
"""


def start(folder: Path, what: str) -> subprocess.Popen[str]:
    """The script in a process of its own."""
    script = UNCHECKED + textwrap.dedent(SCRIPT)
    arguments = [sys.executable, "-c", script, str(folder), what]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script in this process, which takes no seconds to begin."""
    monkeypatch.setattr(sys, "argv", ["-c", str(folder), "no"])
    exec(textwrap.dedent(SCRIPT), {"__name__": "__main__"})


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
def test_the_lock_of_a_killed_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = start(tmp_path, "wait")
    assert first.stdout is not None and first.stdout.readline().strip() == "waiting"
    with pytest.raises(ValueError, match=rf"in use by another fit \(process {first.pid} on "):
        run_here(tmp_path, monkeypatch)
    first.send_signal(signal.SIGKILL)
    first.wait()
    begun = time.monotonic()
    run_here(tmp_path, monkeypatch)
    assert time.monotonic() - begun < 100
    assert (tmp_path / "step-6.index").exists()


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="signals and limits of POSIX")
def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file may grow beyond 200 bytes: TensorFlow fails as on a full disk."""
    full = start(tmp_path, "full")
    output, errors = full.communicate(timeout=120)
    assert full.returncode == 0, errors
    assert f"{tmp_path}: the checkpoint of step 4 could not be written" in output
    assert f"The last good one is {tmp_path}/step-2" in output
    names = sorted(path.name for path in tmp_path.glob("*.index"))
    assert names == ["step-0.index", "step-2.index"] and not (tmp_path / ".unfinished").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        run_here(tmp_path, monkeypatch)
    assert (tmp_path / "step-6.index").exists()
