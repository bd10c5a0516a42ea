"""Inducing points of the parts of a harmonic kernel (HVGP)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import (
    Array,
    check_num_inducing,
    filled_matrix,
    finite_array,
    instance,
    integer,
    refusal,
)
from ...core.clustering import k_means, where_it_lives
from ...core.decomposed import DecomposedInducingVariables
from ...core.family import BlockBatch
from ...core.set_kernel import SetKernel
from .blocks import HarmonicBlocks, PointsOfComponents
from .decomposition import HarmonicComponent, HarmonicKernel


class ComponentInducingPoints(PointsOfComponents):
    """Inducing variables of one part of a harmonic kernel: values of f_t at Z.

    If the multiplicity exceeds one, there are also values at the images G z for the axes with
    0 < t < T / 2. :attr:`HarmonicInducingPoints.inducing_variables` builds objects that share Z.

    :param multiplicity: The number of variables for each point of Z ``[m, D]``, 1 or the part's.
    """

    kernels = (HarmonicComponent, SetKernel)

    def __init__(self, Z: gpflow.Parameter, multiplicity: int = 1) -> None:
        super().__init__()
        self.Z, self.multiplicity = Z, multiplicity

    @property
    def num_inducing(self) -> tf.Tensor | int:
        return self.multiplicity * (self.Z.shape[0] or tf.shape(self.Z)[0])

    def points(self, components: Sequence[int]) -> tf.Tensor:
        """The points of this component, ``[1, m, D]``."""
        return tf.convert_to_tensor(self.Z)[None]

    def num_columns(self, kernel: HarmonicComponent | SetKernel) -> int | None:
        is_part = isinstance(kernel, HarmonicComponent)
        return self.columns_under(kernel, kernel.parent.base_kernel if is_part else kernel)

    def block_batches(self, kernel: HarmonicComponent | SetKernel) -> list[BlockBatch]:
        """One batch with this component. The kernel is a part of a :class:`HarmonicKernel`, or a
        set kernel whose ``point_kernel`` is a part; a ValueError otherwise."""
        part = kernel.point_kernel if isinstance(kernel, SetKernel) else kernel
        if not isinstance(part, HarmonicComponent):
            remedy = "use InducingPatches or OrbitInducingPoints with it"
            raise refusal("kernel", "be a part of a HarmonicKernel", type(kernel).__name__, remedy)
        images = self.multiplicity > 1
        return [HarmonicBlocks(self, part.parent, (part.component,), (0,), images)]


class HarmonicInducingPoints(PointsOfComponents, DecomposedInducingVariables):
    """Values of the parts f_t of a harmonic GP at points: ``u_t = f_t(Z_t)``.

    The T parts, ``T = kernel.num_components``, are independent a priori. So Kuu has one diagonal
    block for each part (Sun et al. 2021, section 4.1). If each part has its own points, there are T
    times as many inducing points. Shared points need T times fewer evaluations of the kernel.

    By default each part has one variable for each of its points. With ``multiplicities`` (see
    ``complete`` of :meth:`for_kernel`), a part that adds two complex kernels has one variable at z
    and one at G z. A joint q(u) over shared points then equals the q(u) of an SVGP whose inducing
    points are the orbits of Z (Theorem 4.1). By default, this holds only if all orders are 2.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> negation = idm.transforms.Negation()
    >>> kernel = idm.kernels.HarmonicKernel(gpflow.kernels.Matern32(), negation)
    >>> points = idm.inducing_variables.HarmonicInducingPoints.from_data(kernel, X, 10)
    >>> points.num_inducing  # ten variables for each of the two parts
    20
    >>> model = idm.models.AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(), points)
    >>> [q_mu.shape for q_mu in model.q_mu]
    [TensorShape([10, 1]), TensorShape([10, 1])]

    :param Z: ``[T, m, D]``, or ``[m, D]`` to share the points among the parts.
    :param num_components: The number T of parts; required if Z is shared.
    :param multiplicities: For each part, the number of variables for each of its points.
    :ivar Z_per_component: A list of T parameters ``[m, D]``, or of one parameter for all parts.
    :ivar shared: Whether all parts have the same points.
    :raises ValueError: If Z has another rank or is not finite, or the counts do not agree.
    """

    kernels = (HarmonicKernel,)

    def __init__(
        self,
        Z: TensorType | Sequence[TensorType],
        num_components: int | None = None,
        *,
        multiplicities: Sequence[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        form = "[T, m, D] with points for each of T components, or [m, D] to share them"
        values: Array = finite_array("Z", Z, (2, 3), form).astype(gpflow.default_float())
        if num_components is not None:
            num_components = integer("num_components", num_components, at_least=1)
        count = len(values) if values.ndim == 3 else num_components
        if count is None or num_components not in (None, count):
            expected = "given where Z is [m, D]" if count is None else f"{count}, as Z has"
            raise ValueError(
                f"num_components must be {expected}, found {num_components}; pass "
                "num_components=kernel.num_components, or Z of shape [T, m, D] for T of them."
            )
        check_num_inducing("num_components", count * values.shape[-2], "points")
        self.num_components = count
        self.multiplicities = tuple(multiplicities or (1,) * count)
        self.shared = values.ndim == 2
        blocks = values[None] if self.shared else values
        self.Z_per_component = [gpflow.Parameter(block) for block in blocks]
        self.num_points, self.input_dim = values.shape[-2:]

    @classmethod
    def for_kernel(
        cls,
        kernel: HarmonicKernel,
        Z: TensorType | Sequence[TensorType],
        *,
        complete: bool = False,
        name: str | None = None,
    ) -> HarmonicInducingPoints:
        """Make inducing points for all parts of a kernel.

        :param Z: ``[T, m, D]``, or ``[m, D]`` to share the points among the T parts.
        :param complete: Whether each part that adds several complex kernels also has variables at
            images of its points. The total number of variables is then that of the orbits' points.
        :raises ValueError: If the kernel is not harmonic, or Z does not fit it.
        """
        _harmonic(kernel)
        multiplicities = kernel.multiplicities if complete else None
        # Needed if Z is a matrix; otherwise validate_kernel compares the number in Z.
        count = kernel.num_components if np.ndim(Z) == 2 else None
        points = cls(Z, num_components=count, multiplicities=multiplicities, name=name)
        points.validate_kernel(kernel)
        return points

    @classmethod
    def from_data(
        cls,
        kernel: HarmonicKernel,
        X: TensorType,
        num_inducing: int,
        *,
        shared: bool = False,
        complete: bool = False,
        seed: int = 0,
        name: str | None = None,
    ) -> HarmonicInducingPoints:
        """Make inducing points at k-means centres of the data, with a different seed for each part.

        If the base kernel is a set kernel, k-means runs on the points of the inputs, such as the
        patches of images. An inducing point of a part represents all its images.

        :param X: Inputs ``[N, D]``; of more than ``max(10000, 10 m)`` rows, a sample is used.
        :param num_inducing: The number m of points of each part.
        :param shared: Whether all parts use the same points.
        :param complete: As for :meth:`for_kernel`.
        :param seed: Seed of the sample and of the initial centres.
        :raises ValueError: If X does not fit the kernel, or has too few rows (or patches).
        """
        _harmonic(kernel)
        X = where_it_lives(kernel.base_kernel, kernel.seen(filled_matrix("X", X, "[N, D]")), seed)
        if shared:
            Z = k_means(X, num_inducing, seed=seed)
        else:
            seeds = range(seed, seed + kernel.num_components)
            Z = np.stack([k_means(X, num_inducing, seed=s) for s in seeds])
        return cls.for_kernel(kernel, Z, complete=complete, name=name)

    @property
    def Z(self) -> tf.Tensor:
        """The point of each inducing variable, ``[M, D]``, one part after the other.

        For a variable at the image of a point (see ``multiplicities``), the row is the point
        itself. To change points, assign to :attr:`Z_per_component`.
        """
        blocks = self.inducing_variables
        return tf.concat([tf.tile(block.Z, [block.multiplicity, 1]) for block in blocks], axis=0)

    @property
    def num_inducing(self) -> int:
        """The number M of inducing variables of all parts."""
        return sum(self.multiplicities) * self.num_points

    @property
    def inducing_variables(self) -> tuple[ComponentInducingPoints, ...]:
        """The inducing points of each part, as objects that share the parameters."""
        parameters = itertools.cycle(self.Z_per_component)  # shared points: the same for all
        return tuple(map(ComponentInducingPoints, parameters, self.multiplicities))

    def points(self, components: Sequence[int] | None = None) -> tf.Tensor:
        """The points of the numbered parts, or of all, ``[T, m, D]``; ``[1, m, D]`` if shared."""
        if self.shared or components is None:
            return tf.stack(self.Z_per_component)
        return tf.stack([self.Z_per_component[t] for t in components])

    def num_columns(self, kernel: HarmonicKernel) -> int | None:
        return self.columns_under(kernel, kernel.base_kernel)

    def block_batches(self, kernel: HarmonicKernel) -> list[BlockBatch]:
        """The parts, in batches with equal multiplicity."""
        self.validate_kernel(kernel)
        alike: dict[int, list[int]] = {}
        for component, multiplicity in enumerate(self.multiplicities):
            alike.setdefault(multiplicity, []).append(component)
        return [
            HarmonicBlocks(self, kernel, tuple(alike[count]), tuple(alike[count]), count > 1)
            for count in sorted(alike)
        ]

    def validate_kernel(self, kernel: HarmonicKernel) -> None:
        """Check that parts and multiplicities are those of the kernel; a ValueError otherwise."""
        if self.num_components != kernel.num_components:
            raise ValueError(
                f"Z must have points for the {kernel.num_components} components of the kernel, "
                f"found {self.num_components}; pass Z of shape [{kernel.num_components}, m, D], or "
                f"num_components={kernel.num_components} with a shared Z."
            )
        single = (1,) * self.num_components
        if self.multiplicities not in (single, kernel.multiplicities):
            remedy = "build the points with for_kernel(kernel, Z, complete=True)"
            rule = f"be {kernel.multiplicities} for this kernel, or all one"
            raise refusal("multiplicities", rule, self.multiplicities, remedy)


def _harmonic(kernel: HarmonicKernel) -> None:
    remedy = "pass interdomain.kernels.HarmonicKernel(base_kernel, transforms)"
    instance("kernel", kernel, HarmonicKernel, "a HarmonicKernel", remedy)
