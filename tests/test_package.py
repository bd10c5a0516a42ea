"""What `import interdomain` does and does not do, and what the distribution contains."""

import importlib.metadata
import importlib.resources
import json
import subprocess
import sys

import pytest

import interdomain

# GPflow is imported first, so that what TensorFlow and GPflow do to the process is not counted.
# Standard output and error are caught as file descriptors: native code writes there as well.
IMPORT_AND_REPORT = """
import json, os, tempfile

import gpflow
import tensorflow as tf

def state():
    dispatchers = {
        "Kuu": gpflow.covariances.Kuu,
        "Kuf": gpflow.covariances.Kuf,
        "conditional": gpflow.conditionals.conditional,
        "get_posterior_class": gpflow.posteriors.get_posterior_class,
        "prior_kl": gpflow.kullback_leiblers.prior_kl,
    }
    registered = {
        name: {str(types): id(function) for types, function in dispatcher.funcs.items()}
        for name, dispatcher in dispatchers.items()
    }
    settings = {
        "environment": dict(os.environ),
        "gpflow": repr(gpflow.config.config()),
        "threads": [
            tf.config.threading.get_inter_op_parallelism_threads(),
            tf.config.threading.get_intra_op_parallelism_threads(),
        ],
        "eager": tf.config.functions_run_eagerly(),
    }
    return settings, registered, "matplotlib" in os.sys.modules

settings_before, registered_before, drawing_before = state()
with tempfile.TemporaryFile() as caught:
    saved = os.dup(1), os.dup(2)
    os.dup2(caught.fileno(), 1)
    os.dup2(caught.fileno(), 2)
    import interdomain
    os.sys.stdout.flush()
    os.sys.stderr.flush()
    os.dup2(saved[0], 1)
    os.dup2(saved[1], 2)
    caught.seek(0)
    printed = caught.read().decode()
settings_after, registered_after, drawing_after = state()

print(json.dumps({
    "printed": printed,
    "settings_before": settings_before,
    "settings_after": settings_after,
    "imports_matplotlib": drawing_after and not drawing_before,
    "replaced_registrations": [
        name + types
        for name, functions in registered_before.items()
        for types, function in functions.items()
        if registered_after[name].get(types) != function
    ],
}))
"""


@pytest.mark.slow
def test_import_prints_and_changes_nothing() -> None:
    """No output, no global state, no registration of GPflow, and no matplotlib."""
    process = subprocess.run(
        [sys.executable, "-c", IMPORT_AND_REPORT], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    report = json.loads(process.stdout.splitlines()[-1])
    assert report["printed"] == ""
    assert report["settings_after"] == report["settings_before"]
    assert report["replaced_registrations"] == []
    assert report["imports_matplotlib"] is False


def test_version_is_that_of_the_distribution() -> None:
    try:
        installed = importlib.metadata.version("interdomain")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("interdomain is on the path but not installed")
    assert interdomain.__version__ == installed


def test_py_typed_is_part_of_the_package() -> None:
    assert importlib.resources.files("interdomain").joinpath("py.typed").is_file()


def test_all_is_sorted_and_complete() -> None:
    modules = [name for name in interdomain.__all__ if not name.startswith("_")]
    assert modules == sorted(modules) and "plotting" in modules
    assert all(hasattr(interdomain, name) for name in interdomain.__all__)
