"""A fit that is stopped and resumed ends on the same bits as one that is not."""

import os
import signal
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.kernels import Matern32, Matern52
from gpflow.likelihoods import Bernoulli, Poisson
from gpflow.mean_functions import Constant

from interdomain import fit
from interdomain.kernels import SphericalMatern32, SphericalMatern52
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.training.run import _described
from tests.parts import with_harmonics
from tests.training import killed_process
from tests.training.killed_process import KINDS, STOP, run
from tests.training.strategy_models import X, Y, difference, regression
from tests.workers import finish, start, start_workers


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_process_is_resumed_by_another(assert_same_bits, tmp_path):
    """Nothing that the resumed fits need is left in the first process, and nothing is half-done."""
    process = start(Path(killed_process.__file__), str(tmp_path))
    assert process.stdout.readline().strip() == "waiting", process.communicate()[1]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for kind in KINDS:
        whole, expected = run(kind, tmp_path / "whole")
        resumed, result = run(kind, tmp_path)
        assert result.first_step == STOP, kind
        if kind == "l-bfgs":  # by another way
            np.testing.assert_allclose(resumed.weights, whole.weights, rtol=1e-6)
            continue
        assert_same_bits(resumed, whole)
        np.testing.assert_array_equal(result.elbos, expected.elbos[STOP:])
        # Not because nothing moves any more.
        assert abs(expected.elbos[-1] - expected.elbos[STOP]) > 1e-4


def test_another_fit_is_refused(data, make_line, make_bayesian_line, tmp_path):
    arguments = {"batch_size": 8, "steps": 1, "checkpoint_dir": tmp_path, "progress": False}
    fit(make_line(), data, **arguments)
    batches, other = tf.data.Dataset.from_tensor_slices(data).batch(10), make_bayesian_line()
    changes = [
        ({"options": {"seed": 1}}, "seed: 0; now seed: 1"),
        ({"optimizer": 0.5}, r"optimizer: 0\.01; now optimizer: 0\.5"),
        ({"batch_size": None}, "method: minibatches; .*now method: l-bfgs"),
        ({"data": (data[0], 2 * data[1])}, r"\(rows: \d+; now rows: \d+\); pass what was"),
        ({"data": batches, "batch_size": None}, "data: .* 4 batches"),
        ({"model": other}, "model: Line; weights: .*now model: BayesianLine; .*q_mu: f"),
    ]
    for change, message in changes:
        given = {"model": make_line(), "data": data, **arguments, **change}
        with pytest.raises(ValueError, match=f"another fit .*{message}"):
            fit(**given)


def test_other_rows_and_classes_are_another_fit(data):
    """... whatever the method; but neither a model that is built again, nor one that was used."""
    X, Y = data
    labels = (Y > 0) * 1.0

    def sgpr(kernel: Any = SphericalMatern52, targets: Any = Y, source: Any = tuple, **more: Any):
        few = with_harmonics(kernel(), 1)
        return StructuredSGPR(source((X, targets)), *few, progress=False, **more)

    def dual(likelihood: Any = Bernoulli, targets: Any = labels):
        kernel, few = with_harmonics(SphericalMatern52(), 1)
        model = DualSVGP((X, targets), kernel, likelihood(), few, progress=False)
        model.site_variables()  # which a fit makes first
        return model

    def svgp(kernel: Any = Matern52, likelihood: Any = Poisson, **more: Any):
        return gpflow.models.SVGP(kernel(), likelihood(), X[:3].copy(), **more)

    def gpr(targets: Any = Y, prior: Any = None, transform: Any = None):
        model = gpflow.models.GPR((X, targets), Matern52())
        model.kernel.variance.prior = prior
        if transform is not None:
            model.kernel.variance = gpflow.Parameter(1.0, transform=transform)
        return model

    def batched(arrays: Any) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices(arrays).batch(20)

    def statistics(arrays: Any) -> Any:
        return sgpr(targets=arrays[1]).statistics

    makes: dict[Any, list[dict[str, Any]]] = {}
    makes[sgpr] = [{"kernel": SphericalMatern32}, {"targets": 2 * Y}, {"source": batched}]
    makes[sgpr] += [{"mean_function": Constant(0.0)}, {"charge": "trace"}]
    makes[sgpr] += [{"source": batched, "targets": 2 * Y}]
    makes[sgpr] += [{"source": statistics, "targets": targets} for targets in (Y, 2 * Y)]
    makes[dual] = [{"likelihood": Poisson}, {"targets": 1 - labels}]
    makes[svgp] = [{"kernel": Matern32}, {"likelihood": Bernoulli}, {"whiten": False}]
    makes[svgp] += [{"likelihood": lambda: Poisson(tf.nn.softplus)}, {"num_data": 7}]
    makes[svgp] += [{"likelihood": lambda: Poisson(binsize=2.0)}]
    makes[svgp] += [{"kernel": lambda: Matern52(active_dims=[0, 1])}]
    gamma = tfp.distributions.Gamma
    makes[gpr] = [{"targets": 2 * Y}, {"transform": tfp.bijectors.Exp()}]
    makes[gpr] += [{"prior": gamma(np.float64(1.0), np.float64(rate))} for rate in (1, 2)]
    for make, changes in makes.items():
        used = make()
        found = {_described(used, {})}
        if hasattr(used, "elbo") and make is not svgp:
            used.elbo()
        used.predict_y(X[:3])
        for parameter in used.trainable_parameters:
            parameter.assign(0.9 * parameter)
        assert {_described(used, {}), _described(make(), {})} == found, make
        found |= {_described(make(**change), {}) for change in changes}
        assert len(found) == 1 + len(changes), make


# Fits under tf.distribute: the same numbers as on one device, however the rows are spread.

HERE = Path(__file__).parent


@pytest.mark.slow
def test_devices_of_one_process() -> None:
    """Two; batches are not divided evenly, and one has fewer rows than there are devices."""
    found = finish(start(HERE / "strategy_process.py"))
    assert found["replicas"] == 2
    cases = {name: value for name, value in found.items() if name.startswith("case ")}
    assert len(cases) == 2
    for name, found_difference in cases.items():
        assert found_difference < 1e-10, name
    assert found["model outside"].startswith("model: 1 of its")
    assert "created outside of the strategy's scope" in found["optimizer outside"]
    assert "L-BFGS runs on one device" in found["l-bfgs"]
    assert "GPR holds its data" in found["data held"]
    assert "step 1" in found["not finite"] and "after step 0" in found["not finite"]
    assert found["as before"]


@pytest.mark.slow
def test_two_workers_one_of_which_is_killed(tmp_path: Path) -> None:
    """The other one stops with an error; started again, they end where one device ends."""
    script = HERE / "strategy_worker.py"
    chief, other = start_workers(script, str(tmp_path), "25")
    found = finish(chief)
    other.communicate(timeout=60)
    assert other.returncode == -9
    assert found["lost"]
    results = [finish(worker) for worker in start_workers(script, str(tmp_path), "0")]
    elbo = float(regression((X, Y)).elbo())
    for result in results:
        assert result["rows"] == len(X)
        assert result["elbo"] == pytest.approx(elbo, rel=1e-12)
        assert result["others"].startswith("statistics: workers have statistics of diff")
        assert result["replicas"] == 2
        assert result["first_step"] == 25
        assert result["checkpoint"].endswith("step-40")
        single = results[0]["single"]  # the chief alone has fitted on one device
        assert difference(result["moves"], single) < 1e-10
        steps, reason, message = result["ends"]["callback"]
        assert (steps, reason) == (4, "callback") and "ended the fit after step 4" in message
        assert result["ends"]["max_seconds"][:2] == [3, "max_seconds"]
    assert "a checkpoint of another fit" in results[0]["refused"]
    assert [result["bar"] for result in results] == [True, False]  # of the chief alone
    assert results[1]["refused"].startswith("RuntimeError: another worker cannot start")
    kept = sorted(path.name for path in (tmp_path / "killed").glob("*.index"))
    assert kept == [f"step-{step}.index" for step in (30, 35, 40)]
