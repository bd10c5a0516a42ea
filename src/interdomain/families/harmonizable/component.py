"""The components of harmonizable mixture kernels: Shen, Heinonen and Kaski 2019."""

from __future__ import annotations

import math
from typing import Literal

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.utilities import positive

from ..._arguments import Array, choice, filled_matrix, finite_array, numeric, refusal
from ...core.columns import kernel_method
from .algebra import ComponentTensors, densities, wigner, windowed_waves
from .gaussian_factors import (
    MixtureComponent,
    as_definite,
    definite_parameter,
    scaled_matrix,
    smallest_eigenvalue,
)
from .matern_factors import matern_of_lag

_LOCAL = ("gaussian", "matern12", "matern32", "matern52")


class HarmonizableComponent(MixtureComponent):
    """Sinusoids under a Gaussian window: a non-stationary kernel with a spectrum in closed form.

    With ``y = x - centre``, the kernel is::

        k(x, x') = Re k_LSG(scales y, scales y')
                   sum_ij B_ij exp(2 pi i (frequency_i^T y - frequency_j^T y')),
        k_LSG(y, y') = exp(-2 pi^2 m^T envelope m) exp(-2 pi^2 t^T lag t),

    where m is the mean of y and y', and t their difference. See Shen, Heinonen and Kaski,
    *Harmonizable mixture kernels with variational Fourier features*, 2019, eqs. 9 and 14. The
    window of the Q sinusoids has the width ``envelope^(-1/2) / (2 pi)``. B is the covariance of the
    amplitudes, which decorrelate over a lag of ``lag^(-1/2) / (2 pi)``.

    The kernel is valid if ``lag >= envelope / 4`` (a condition that the paper omits) and B is
    positive semi-definite. Both hold for every value of the unconstrained parameters, because the
    parameters are ``envelope``, ``excess = lag - envelope / 4``, and W with ``B = W W^H``. In these
    terms, k_LSG is a window ``exp(-pi^2 y^T envelope y)`` at each input, times a squared
    exponential of t with precision ``excess``. The paper's ``phi^T B phi`` lacks a conjugate.

    **Other kernels of the paper.** Its Theorem 3 allows any locally stationary kernel instead of
    k_LSG. These kernels of its Table 1 and Theorem 3 are available:

    - ``local="matern32"`` (or 12, 52): a product over columns of Matern functions replaces the
      squared exponential of t, with the same lengthscales ``excess^(-1/2) / (2 pi)``. It is valid
      for the same parameters. The spectra are Voigt profiles, in closed form if the window and the
      lag are numbers or diagonals.
    - ``envelope=None``: no window. Two frequencies with ``amplitudes=variance * np.ones((2, 2))``
      give a generalized spectral kernel (GSK: Samo 2017), also with a Matern ``local``. One
      frequency gives the component of a spectral mixture (SM), at zero a squared exponential (SE).
      Two frequencies under a window give the Gaussian mixture kernel of Samo and Roberts (2015).
    - The sparse spectrum kernel (SS) is a sum of ``gpflow.kernels.Cosine``.

    No closed form exists for the generalized spectral *density* without a window (all mass is on
    the lines ``w - v = frequency_i - frequency_j``; the Wigner distribution has a density, except
    for SS); the spectra of an isotropic Matern ``local`` in several columns; Fourier features
    without a window or with a Matern ``local``; and the generalized spectral mixture (GSM: Remes et
    al. 2017), whose frequencies depend on x.

    :param frequencies: ``[Q, D]``, in cycles per unit of x.
    :param amplitudes: B: the diagonal ``[Q]``, or a Hermitian matrix ``[Q, Q]``, positive
        semi-definite, real or complex. The default diagonal is ``1 / Q``, for a variance of one at
        the centre. Training keeps a real B real, and a complex B complex.
    :param centre: The centre of the window: ``[D]``, or a number for all dimensions.
    :param scales: The paper's gamma, ``[D]`` or a number. Not trained by default, because
        ``envelope`` and ``lag`` can have any scale.
    :param envelope: Sigma_1: a number, a diagonal ``[D]`` or a matrix ``[D, D]``; training keeps
        this form. None means no window.
    :param lag: Sigma_2: a number, a diagonal ``[D]`` or a matrix ``[D, D]``.
    :param local: The function of t: "gaussian", "matern12", "matern32" or "matern52".
    :ivar excess: ``lag - envelope / 4``, in the more general form of the two.
    :raises ValueError: If shapes do not fit, an entry is not finite, a matrix is not positive
        definite, or ``lag - envelope / 4`` is not. A Matern ``local`` allows no matrices.
    """

    def __init__(
        self,
        frequencies: TensorType,
        *,
        amplitudes: TensorType | None = None,
        centre: TensorType = 0.0,
        scales: TensorType = 1.0,
        envelope: TensorType | None = 0.1,
        lag: TensorType = 0.1,
        local: Literal["gaussian", "matern12", "matern32", "matern52"] = "gaussian",
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        values = filled_matrix("frequencies", frequencies, "a matrix [Q, D]")
        count, dimension = values.shape
        self.num_frequencies = count
        self.dimension = self.input_dim = dimension
        self.frequencies = gpflow.Parameter(values, name="frequencies")
        self.centre = gpflow.Parameter(_per_column("centre", centre, dimension), name="centre")
        values = _per_column("scales", scales, dimension)
        self.scales = gpflow.Parameter(values, transform=positive(), trainable=False, name="scales")
        root = _root_of_amplitudes(np.full(count, 1 / count) if amplitudes is None else amplitudes)
        if len(root) != count:
            remedy = "pass a variance for each, or a matrix"
            rule = f"have a row for each of {count} frequencies"
            raise refusal("amplitudes", rule, len(root), remedy)
        self.amplitudes_real = gpflow.Parameter(root.real, name="amplitudes_real")
        is_complex, name = np.iscomplexobj(root), "amplitudes_imaginary"
        self.amplitudes_imaginary = gpflow.Parameter(root.imag, name=name) if is_complex else None
        self.local = choice("local", local, _LOCAL)
        window, self.envelope = np.zeros([]), None
        if envelope is not None:
            window = as_definite("envelope", envelope, dimension)
            self.envelope = definite_parameter(window, "envelope")
        parts = [window, as_definite("lag", lag, dimension)]
        if max(part.ndim for part in parts) == 2:
            if local != "gaussian":
                remedy = "pass its diagonal"
                rule = f"be numbers or [{dimension}] with local={local!r}, a product over columns"
                raise refusal("envelope and lag", rule, "a matrix", remedy)
            parts = [part if part.ndim == 2 else part * np.eye(dimension) for part in parts]
        excess = np.asarray(parts[1] - parts[0] / 4)
        if not (smallest := smallest_eigenvalue(excess)) > 0:
            raise ValueError(
                "lag must be above envelope / 4, as the kernel is not valid otherwise: lag - "
                f"envelope / 4 must be positive definite, found {smallest:.3g} as its smallest "
                "eigenvalue; pass a larger lag or a smaller envelope."
            )
        self.excess = definite_parameter(excess, "excess")

    @property
    def lag(self) -> tf.Tensor:
        """The paper's Sigma_2, ``excess + envelope / 4``, in the form of ``excess``."""
        if self.envelope is None:
            return tf.convert_to_tensor(self.excess)
        envelope = tf.convert_to_tensor(self.envelope)
        if self.excess.shape.rank == 2 and envelope.shape.rank < 2:
            envelope *= tf.eye(self.dimension, dtype=envelope.dtype)
        return self.excess + envelope / 4

    @property
    def amplitudes(self) -> tf.Tensor:
        """The matrix B ``[Q, Q]``, complex if the kernel was built with a complex matrix."""
        real, imaginary = self.tensors().amplitudes
        return real if imaginary is None else tf.complex(real, imaginary)

    def _waves(self, *inputs: TensorType) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        component, centred = self.tensors(), [self.centred(X) for X in inputs]
        return component.excess, [(Y, windowed_waves(component, Y)) for Y in centred]

    def _lag_factor(self, X: tf.Tensor, X2: tf.Tensor | None, precision: tf.Tensor) -> tf.Tensor:
        if self._order is None:
            return super()._lag_factor(X, X2, precision)
        return matern_of_lag(X, X2, precision, self._order)

    @property
    def _order(self) -> int | None:
        """The p of Matern functions of order p + 1/2; None for the squared exponential."""
        return None if self.local == "gaussian" else _LOCAL.index(self.local) - 1

    def validate_transform(self) -> None:
        """Check that f has a Fourier transform in closed form; a NotImplementedError otherwise."""
        if self.envelope is None or self._order is not None:
            raise NotImplementedError(
                "Fourier features need a kernel with an envelope and local='gaussian', found "
                f"envelope={None if self.envelope is None else 'a window'} and "
                f"local={self.local!r}; pass such components, or use inducing points."
            )

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        _, [(_, waves)] = self._waves(X)
        return tf.reduce_sum(tf.square(waves), axis=-1)

    @check_shapes("w: [n, D]", "v: [k, D]", "return: [n, k]")
    def generalized_spectral_density(self, w: TensorType, v: TensorType) -> tf.Tensor:
        """The generalized spectral density S(w, v).

        It is the covariance of the process's Fourier transforms at two frequencies, so that
        ``k(x, x') = int int exp(2 pi i (w^T x - v^T x')) S(w, v) dw dv`` (eqs. 15 to 17, for the
        real part).

        :param w: Frequencies, in cycles per unit of x; v has the same unit.
        :return: Complex densities.
        :raises NotImplementedError: If the kernel has no window, so that no density exists.
        """
        if self.envelope is None:
            raise NotImplementedError(
                "Without an envelope there is no generalized spectral density, as all mass is on "
                "lines; pass an envelope to the kernel, or look at its wigner(x, w)."
            )
        w, v = _tensor(w), _tensor(v)
        values = densities(self.tensors(), w, v, self._order)
        centre = self.centre[:, None]
        turn = 2 * math.pi * (tf.matmul(w, centre) - tf.transpose(tf.matmul(v, centre)))
        imaginary = values.same_imaginary
        density = tf.complex(values.same, tf.zeros_like(turn) if imaginary is None else imaginary)
        return density * tf.complex(tf.cos(turn), -tf.sin(turn))

    @check_shapes("x: [n, D]", "w: [k, D]", "return: [n, k]")
    def wigner(self, x: TensorType, w: TensorType) -> tf.Tensor:
        """The Wigner distribution: the power at each frequency and location.

        ``W(x, w) = int k(x + t/2, x - t/2) exp(-2 pi i w^T t) dt`` (eqs. 18 to 20). Eq. 19 lacks
        the factor B_ij inside the real part, where B may be complex. W can be negative.

        :param x: Locations, on the kernel's active columns.
        :param w: Frequencies, in cycles per unit of x.
        """
        return wigner(self.tensors(), _tensor(x) - self.centre, _tensor(w), self._order)

    def tensors(self) -> ComponentTensors:
        """The values of the parameters; envelope and excess include the scales."""
        envelope = 0.0 if self.envelope is None else self.envelope
        parts = self.frequencies, self.amplitudes_real, self.amplitudes_imaginary
        scales, *matrices = map(_tensor, (self.scales, envelope, self.excess))
        return ComponentTensors(
            *(None if part is None else tf.convert_to_tensor(part) for part in parts),
            *(scaled_matrix(matrix, scales) for matrix in matrices),
        )

    def centred(self, X: TensorType) -> tf.Tensor:
        """The active columns of X, minus the centre."""
        return self.seen(X) - self.centre


def _tensor(value: TensorType) -> tf.Tensor:
    return tf.cast(tf.convert_to_tensor(value), gpflow.default_float())


def _per_column(name: str, value: TensorType, dimension: int) -> Array:
    array = finite_array(name, value, (0, 1), f"a number or [{dimension}]")
    return np.broadcast_to(array, [dimension]).copy()


def _root_of_amplitudes(amplitudes: TensorType) -> Array:
    """A matrix W ``[Q, Q]`` with ``B = W W^H``.

    :raises ValueError: If B is neither one variance for each frequency, nor a Hermitian matrix that
        is positive semi-definite and not zero.
    """
    matrix = numeric("amplitudes", amplitudes, "[Q] or [Q, Q]", kinds="fiuc")
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    if not np.allclose(matrix, matrix.conj().T, rtol=1e-10, atol=1e-12 * np.max(np.abs(matrix))):
        remedy = "pass for example W W^H for any matrix W"
        rule = "be Hermitian"
        raise refusal("amplitudes", rule, "a matrix that is not its conjugate transpose", remedy)
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-10 * np.max(np.abs(values)) or not values[-1] > 0:
        remedy = "pass for example W W^H for any matrix W"
        rule = "be positive semi-definite and not zero"
        raise refusal("amplitudes", rule, f"eigenvalues {values}", remedy)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))
