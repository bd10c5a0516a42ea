"""Placement of the blocks of a model on several devices of one machine.

:class:`interdomain.models.AdditiveSVGP` uses this module if its argument ``devices`` is given. The
operations of a block, forward and backward, run on the device of the block. ``tf.device`` does not
ensure this: TensorFlow may place gradients on any device. For several machines, see
:func:`interdomain.fit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import gpflow
import tensorflow as tf
from gpflow.base import TensorType

from ._arguments import items


def resolve_devices(devices: Sequence[str] | Literal["auto"] | None) -> tuple[str, ...] | None:
    """The names of devices as TensorFlow lists them; None if blocks are not placed.

    :param devices: Names such as "GPU:0" or "/device:CPU:1"; "auto" for all logical GPUs, if there
        are two or more; None.
    :raises ValueError: If the list is empty, or a device does not exist.
    """
    if devices is None:
        return None
    available = tf.config.list_logical_devices()
    if devices == "auto":
        gpus = [device.name for device in available if device.device_type == "GPU"]
        return tuple(gpus) if len(gpus) > 1 else None
    known = {device.name.rsplit("device:", 1)[-1]: device.name for device in available}
    listed = items("devices", devices, 'a list of names, "auto" or None')
    names = [
        str(getattr(name, "name", name)).rsplit("device:", 1)[-1].strip("/") for name in listed
    ]
    missing = [name for name in names if name not in known]
    if missing or not names:
        raise ValueError(
            f"devices must be names of devices that TensorFlow has, {list(known)}, found "
            f"{missing or 'none'}; pass some of these, or None. Logical devices are made with "
            "tf.config.set_logical_device_configuration, before TensorFlow is first used."
        )
    return tuple(known[name] for name in names)


def move_parameters(module: tf.Module, blocks: Sequence[tf.Module], devices: Sequence[str]) -> None:
    """Move the parameters of each block to its device. Blocks are assigned to devices in turn.

    A variable cannot be moved. A new parameter therefore replaces the old one in the module or
    list that holds it. Parameters that several blocks share stay where they are.

    :param module: The module that holds the blocks, or the parameters that the blocks are views of.
    :param blocks: The blocks, in the order in which they are assigned to devices.
    :param devices: The names of the devices, as :func:`resolve_devices` returns them.
    """
    block_ids = [{id(parameter) for parameter in block.parameters} for block in blocks]
    uses = Counter(parameter for ids in block_ids for parameter in ids)
    targets = {
        parameter: devices[t % len(devices)]
        for t, ids in enumerate(block_ids)
        for parameter in ids
        if uses[parameter] == 1
    }
    for owner in (module, *module.submodules):
        for name, value in list(vars(owner).items()):
            if isinstance(value, gpflow.Parameter):
                setattr(owner, name, _on_device(value, targets))
            elif isinstance(value, list):
                moved = [_moved(item, targets) for item in value]
                if any(new is not old for new, old in zip(moved, value, strict=True)):
                    # A changed list could not be saved; families refuse to replace it.
                    tf.Module.__setattr__(owner, name, moved)


def _moved(item: Any, targets: dict[int, str]) -> Any:
    return _on_device(item, targets) if isinstance(item, gpflow.Parameter) else item


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

    A separate tape, inside ``tf.device``, computes the gradient.

    :param function: A function from tensors to a tuple of tensors; it may read variables.
    :param device: The name of the device, as :func:`resolve_devices` returns it.
    :param inputs: Tensors. Gradients flow to the inputs and to the variables.
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
