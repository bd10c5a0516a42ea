"""Places the blocks of a model on devices.

A block's operations, forward and backward, run on the device of the block. Without this,
TensorFlow may place the gradients of operations that are recorded under ``tf.device`` on any
device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gpflow
import tensorflow as tf
from gpflow.base import TensorType

from .._arguments import items
from .._tracing import Traced

HEAVY_OPERATIONS = (
    "Cholesky",
    "MatrixTriangularSolve",
    "BatchMatMulV2",
    "MatMul",
    "Exp",
    "While",
    "StatelessWhile",
)
"""The operations that a report has columns for."""


def resolve_devices(devices: Sequence[str] | Literal["auto"] | None) -> tuple[str, ...] | None:
    """The names of devices as TensorFlow lists them; None if blocks are not to be placed.

    :param devices: Names such as "GPU:0" or "/device:CPU:1"; "auto" for all logical GPUs, if there
        are two or more; None.
    :raises ValueError: If the list is empty, or a device does not exist.
    """
    if devices is None:
        return None
    available = _devices_of_this_process()
    if isinstance(devices, str):
        if devices != "auto":
            raise ValueError(
                f'devices must be a list of names, "auto" or None, found {devices!r}; pass '
                f"[{devices!r}] for a single device."
            )
        gpus = [name for name, device in available.items() if device.device_type == "GPU"]
        return tuple(gpus) if len(gpus) > 1 else None
    names = []
    for device in items("devices", devices, 'a list of names, "auto" or None'):
        found = [name for name in available if name.lower().endswith(_short_name(device))]
        if not found:
            raise ValueError(
                f"devices: there is no device {device!r}; there are "
                f"{[_display_name(name) for name in available]}. Logical devices are made with "
                "tf.config.set_logical_device_configuration, before TensorFlow is first used."
            )
        names.append(found[0])
    if not names:
        raise ValueError('devices must not be empty; pass names, "auto", or None.')
    return tuple(names)


def _devices_of_this_process() -> dict[str, Any]:
    """By name; a worker of a cluster sees those of the others as well."""
    with tf.init_scope():
        process = tf.zeros([]).device.rsplit("/device:", 1)[0]
    devices = tf.config.list_logical_devices()
    own = {device.name: device for device in devices if device.name.startswith(f"{process}/")}
    return own or {device.name: device for device in devices}


def _short_name(device: str) -> str:
    """ "gpu:0" for "GPU:0", "/gpu:0", "/device:GPU:0" and full names."""
    name = str(device).lower().rsplit("/", 1)[-1].removeprefix("device:")
    return ":" + name if ":" in name else f":{name}:0"


def _display_name(device: str) -> str:
    return device.rsplit("device:", 1)[-1]


def move_parameters(module: tf.Module, blocks: Sequence[tf.Module], devices: Sequence[str]) -> None:
    """Move each block's parameters to its device. Blocks are assigned to the devices in turn.

    A variable cannot be moved, so a new parameter takes the place of the old one, in the module or
    list that holds it. Parameters that several blocks share stay where they are.

    :param module: The module that holds the blocks, or the parameters that the blocks are views of.
    :param blocks: The blocks, in the order in which they are assigned to devices.
    :param devices: The names of the devices, as :func:`resolve_devices` returns them.
    """
    uses: dict[int, list[int]] = {}
    for t, block in enumerate(blocks):
        for parameter in {id(p): p for p in block.parameters}:
            uses.setdefault(parameter, []).append(t)
    targets = {
        parameter: devices[blocks_of[0] % len(devices)]
        for parameter, blocks_of in uses.items()
        if len(blocks_of) == 1
    }
    for owner in (module, *module.submodules):
        for name, value in list(vars(owner).items()):
            if isinstance(value, gpflow.Parameter):
                setattr(owner, name, _on_device(value, targets))
            elif isinstance(value, list):
                for k, item in enumerate(value):
                    if isinstance(item, gpflow.Parameter):
                        value[k] = _on_device(item, targets)


def _on_device(parameter: gpflow.Parameter, targets: dict[int, str]) -> gpflow.Parameter:
    device = targets.get(id(parameter))
    if device is None or parameter.unconstrained_variable.device.endswith(device):
        return parameter
    with tf.device(device):
        return gpflow.Parameter(
            parameter.numpy(),
            transform=parameter.transform,
            prior=parameter.prior,
            prior_on=parameter.prior_on,
            trainable=parameter.trainable,
        )


def pinned(
    function: Callable[..., tuple[tf.Tensor, ...]], device: str, *inputs: TensorType
) -> tuple[tf.Tensor, ...]:
    """Compute ``function(*inputs)`` and its gradient on a device.

    The gradient is taken by a separate tape, inside ``tf.device``.

    :param function: A function from tensors to a tuple of tensors; it may read variables.
    :param device: The name of the device, as :func:`resolve_devices` returns it.
    :param inputs: Tensors. Gradients flow to them, and to the variables.
    """

    @tf.custom_gradient
    def on_device(*tensors: tf.Tensor) -> tuple[tuple[tf.Tensor, ...], Callable[..., Any]]:
        with tf.device(device), tf.GradientTape(persistent=True) as tape:
            tape.watch(tensors)
            values = function(*tensors)

        def gradient(*upstream: tf.Tensor, variables: Sequence[tf.Variable] | None = None) -> Any:
            watched = list(variables or ())
            with tf.device(device):
                gradients = tape.gradient(
                    values, [*tensors, *watched], output_gradients=list(upstream)
                )
            to_inputs = gradients[: len(tensors)]
            if variables is None:
                return to_inputs
            return to_inputs, gradients[len(tensors) :]

        return values, gradient

    return tuple(on_device(*(tf.convert_to_tensor(value) for value in inputs)))


@dataclass(frozen=True)
class PlacementReport:
    """Where the operations of a model's elbo and gradient are placed.

    :ivar operations: The number of operations of each type, for each device ("" for operations that
        TensorFlow may place anywhere).
    """

    operations: dict[str, Counter[str]]

    def __str__(self) -> str:
        present = set().union(*self.operations.values())
        heavy = [name for name in HEAVY_OPERATIONS if name in present]
        rows = [["device", *heavy, "others"]]
        for device, counts in sorted(self.operations.items()):
            others = sum(counts.values()) - sum(counts[name] for name in heavy)
            label = _display_name(device) if device else "(not placed)"
            rows.append([label, *(str(counts[name]) for name in heavy), str(others)])
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def report(model: gpflow.models.BayesianModel, data: Any) -> PlacementReport:
    """Print which operations of a model's elbo and its gradient run on which device.

    The step is traced, not run. If the blocks have devices, only a few small operations are not
    placed: the likelihood, and the sums over the blocks.

    :param model: A model with an ``elbo``, such as :class:`interdomain.models.AdditiveSVGP`.
    :param data: The argument of ``elbo``: (X, Y).
    :return: What was printed.
    :raises ValueError: If the model has no ``elbo``.
    """
    if not hasattr(model, "elbo"):
        raise ValueError(
            f"model must have an elbo, found {type(model).__name__}; pass an AdditiveSVGP."
        )
    variables = model.trainable_variables

    def build(elbo: Callable[..., tf.Tensor]) -> Callable[[], list[tf.Tensor]]:
        def step() -> list[tf.Tensor]:
            with tf.GradientTape() as tape:
                loss = elbo(data)
            gradients: list[tf.Tensor] = tape.gradient(loss, variables)
            return gradients

        return step

    graph = Traced(build, model.elbo).concrete_function().graph
    operations: dict[str, Counter[str]] = {}
    for node in graph_nodes(graph):
        operations.setdefault(node.device, Counter())[node.op] += 1
    result = PlacementReport(operations)
    print(result)  # noqa: T201 - printing is what this function is for
    return result


def graph_nodes(graph: tf.Graph) -> list[Any]:
    """The nodes of a graph, those inside its loops and function calls included."""
    definition = graph.as_graph_def()
    nodes: list[Any] = list(definition.node)
    for function in definition.library.function:
        nodes.extend(function.node_def)
    return nodes
