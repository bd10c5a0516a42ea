"""The harmonic kernel decomposition: a kernel as a sum over the characters of a group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..._arguments import Array, refusal
from ...core.columns import kernel_method, num_columns, scaled_parts
from ...core.decomposed import DecomposedKernel
from ...core.parameters import single_output
from ...core.set_kernel import SetKernel, SetKernelView, SummedKernel
from .orbit_sums import orbit_sums, weighted
from .symmetry import validate_invariance
from .transforms.base import CyclicTransform
from .transforms.product import Product


class HarmonicKernel(DecomposedKernel):
    """A kernel that is invariant to cyclic transformations, split into orthogonal parts.

    Let ``G`` have order T and ``k(G x, G x') = k(x, x')``. The discrete Fourier transform of k
    along the orbit of an input gives kernels that sum to k (Sun et al. 2021, eqs. 5 and 10). Adding
    the kernels of frequencies t and T - t gives ``floor(T / 2) + 1`` real kernels (section 3.4),

        k_t(x, x') = c_t / T sum_s cos(2 pi t s / T) k(x, G^s x'),

    where ``c_t`` is 1 for t = 0 and t = T / 2, and 2 otherwise. For several transformations that
    commute, the cosines are multiplied (section 3.5). The RKHSs of the parts are orthogonal.

    ``K`` and ``K_diag`` are those of the base kernel. The transformations act on all active columns
    of this kernel; the base kernel then selects its ``active_dims``. If the base kernel is a
    :class:`SetKernel` such as :class:`Convolutional`, they act on its points (the patches), and
    its base function g is split: ``f_t(x) = sum_p w_p g_t(x_p)`` (section 6.4).

    >>> import gpflow, numpy as np, interdomain as idm
    >>> negations = [idm.transforms.Negation([0]), idm.transforms.Negation([1, 2])]
    >>> kernel = idm.kernels.HarmonicKernel(gpflow.kernels.Matern32(), negations)
    >>> kernel.num_components
    4
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> np.allclose(sum(part(X) for part in kernel.kernels), kernel(X))
    True

    :param base_kernel: A kernel that the transformations leave unchanged, or a :class:`SetKernel`
        whose ``point_kernel`` they leave unchanged. Stationary kernels are invariant to negations
        and, if periodic, translations; isotropic and inner-product kernels to orthogonal maps.
    :param transforms: One or several commuting transformations (:mod:`interdomain.transforms`).
    :ivar num_components: The number of real parts: ``prod_j (floor(T_j / 2) + 1)`` over the axes.
    :ivar frequencies: The frequency (t_1, ..., t_J) of each part; the last axis varies fastest.
    :ivar multiplicities: The number of complex kernels added in each part: a factor 2 for each axis
        with 0 < t < T / 2. A part has this many independent functions for each point of an orbit.
        Theorem 4.1 needs a variable for each (``complete`` of ``HarmonicInducingPoints``).
    :raises ValueError: If the transformations do not commute, or the kernel is not invariant.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        transforms: CyclicTransform | Sequence[CyclicTransform],
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        remedy = "decompose the kernel of each output, and wrap the HarmonicKernels instead"
        self.base_kernel = single_output("base_kernel", base_kernel, remedy)
        self.transform = Product(transforms)
        orders = self.transform.orders
        self._weights = _cosine_weights(orders)
        self.num_components = len(self._weights)
        self.frequencies = tuple(itertools.product(*(range(T // 2 + 1) for T in orders)))
        components = range(self.num_components)
        self.multiplicities = tuple(2 ** len(self._paired_axes(t)) for t in components)
        self.validate()

    def scaled_parts(self) -> list[Kernel]:
        """The parts of the base kernel that divide columns of X by a lengthscale."""
        return scaled_parts(self.base_kernel)

    @property
    def transformed_kernel(self) -> Kernel:
        """The kernel whose inputs are transformed: the base kernel, or its ``point_kernel``."""
        return self.base_kernel if self._set_kernel is None else self._set_kernel.point_kernel

    @property
    def kernels(self) -> tuple[HarmonicComponent | SetKernel, ...]:
        """The real parts k_t: kernels that share this kernel's parameters."""
        parts = tuple(HarmonicComponent(self, t) for t in range(self.num_components))
        set_kernel = self._set_kernel
        if set_kernel is None:
            return parts
        if num_columns(self, 1) is None:
            remedy = "set kernel.base_kernel.active_dims"
            rule = f"be those of its base_kernel if this is a {type(set_kernel).__name__}"
            raise refusal("active_dims of a HarmonicKernel", rule, self.active_dims, remedy)
        return tuple(SetKernelView(set_kernel, part) for part in parts)

    def orbit_weights(self, component: int, shift: Sequence[int]) -> Array:
        """The weights ``[T]`` of ``k(G^s z, x)`` in ``k_t(G^shift z, x)``, with t the component.

        :param shift: The exponents of the first axes; the exponents of the other axes are zero.
        """
        axes = tuple(range(len(shift)))
        return np.roll(self._weights[component], tuple(shift), axes).ravel()

    def shifts(self, component: int) -> tuple[tuple[int, ...], ...]:
        """All tuples of exponents: 0 or 1 for an axis with 0 < t < T / 2, and 0 for other axes."""
        paired = self._paired_axes(component)
        choices = [(0, 1) if axis in paired else (0,) for axis in range(len(self.transform.orders))]
        return tuple(itertools.product(*choices))

    def validate(self) -> None:
        """Check that the kernel is invariant with its current parameters.

        Call this method after training. For example, a kernel with one lengthscale for each column
        is invariant to a PCA negation only while the lengthscales are equal.

        :raises ValueError: If the kernel is not invariant to one of the transformations.
        """
        for axis in self.transform.axes:
            validate_invariance(self.transformed_kernel, axis, self.transform)

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        return self.base_kernel(self.seen(X), None if X2 is None else self.seen(X2))

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return self.base_kernel(self.seen(X), full_cov=False)

    def orbit_covariances(self, orbits: tf.Tensor, X: TensorType, weights: tf.Tensor) -> tf.Tensor:
        """The sums ``sum_s weights[u, p, s] cov(g(orbits[u, s, :]), f(X))``, ``[U, P, m, N]``.

        :param orbits: ``[U, S, m, D]``, in the space on which the transformations act.
        :param X: ``[N, D]``, inputs of this kernel.
        :param weights: ``[U, P, S]``.
        """
        X = self.seen(X)
        if self._set_kernel is None:
            return orbit_sums(self.base_kernel, orbits, X, weights)
        points = tf.reshape(orbits, [-1, orbits.shape[-1]])
        return weighted(weights, self._set_kernel.point_covariance(points, X), orbits, X)

    @property
    def _set_kernel(self) -> SetKernel | None:
        """The base kernel if it sums a base function over points, None otherwise."""
        return self.base_kernel if isinstance(self.base_kernel, SetKernel) else None

    def _paired_axes(self, component: int) -> tuple[int, ...]:
        pairs = zip(self.frequencies[component], self.transform.orders, strict=True)
        return tuple(axis for axis, (t, T) in enumerate(pairs) if 0 < 2 * t < T)


class HarmonicComponent(SummedKernel):
    """One real part of a :class:`HarmonicKernel`, built by the property ``kernels``.

    :param parent: The decomposed kernel, whose parameters this kernel uses. If its base kernel is a
        set kernel, the part is the kernel of a part of the base function.
    """

    def __init__(self, parent: HarmonicKernel, component: int) -> None:
        frequency = "_".join(map(str, parent.frequencies[component]))
        super().__init__(name=f"{parent.name}_{frequency}")
        self.parent, self.component = parent, component
        if parent.transformed_kernel is parent.base_kernel:
            self.active_dims = parent.active_dims

    @property
    def input_dim(self) -> int | None:
        return self.parent.transform.input_dim

    @property
    def weights(self) -> Array:
        """The weights ``[T]`` of the elements of the orbit."""
        return self.parent.orbit_weights(self.component, ())

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        X = self.seen(X)
        values = self._between(self.parent.transform.orbit(X)[..., None, :], X[..., None, :])
        return tf.tensordot(tf.constant(self.weights, values.dtype), values[..., 0, 0], 1)

    def _matrix(self, X: tf.Tensor, X2: tf.Tensor | None) -> tf.Tensor:
        orbits, weights = self.parent.transform.orbit(X)[None], self.weights[None, None]
        others = X if X2 is None else X2
        return orbit_sums(self.parent.transformed_kernel, orbits, others, weights)[0, 0]

    def _batched_K(self, X: tf.Tensor) -> tf.Tensor:
        values = self._between(self.parent.transform.orbit(X), X)
        return tf.tensordot(tf.constant(self.weights, values.dtype), values, 1)

    def _between(self, orbit: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The values ``k(G^s X, X)`` within each batch, ``[T, batch..., N, N]``.

        With two inputs, GPflow evaluates all pairs of their batches; with one input, it evaluates
        each batch with itself. So both inputs are concatenated into one.
        """
        X = tf.broadcast_to(X, tf.shape(orbit))
        num_points = tf.shape(X)[-2]
        both = self.parent.transformed_kernel(tf.concat([orbit, X], axis=-2))
        return both[..., :num_points, num_points:]


def _cosine_weights(orders: Sequence[int]) -> Array:
    """The products over axes of ``c_t / T cos(2 pi t s / T)``, ``[components, T_1, ..., T_J]``."""
    factors = []
    for T in orders:
        t = np.arange(T // 2 + 1)
        # The product t s is reduced modulo T before the cosine, so that ones are exact.
        cosines = np.cos(2 * np.pi * (np.outer(t, np.arange(T)) % T) / T)
        cosines[np.abs(cosines) < 1e-15] = 0.0
        factors.append(np.where((t == 0) | (2 * t == T), 1, 2)[:, None] * cosines / T)
    product = reduce(np.multiply.outer, factors)  # two axes for each factor
    axes = np.arange(product.ndim)
    return np.transpose(product, [*axes[::2], *axes[1::2]]).reshape(-1, *orders)
