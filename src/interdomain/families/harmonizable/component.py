"""One component of a harmonizable mixture: Shen, Heinonen and Kaski 2019."""

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

    With ``y = x - centre`` (Shen, Heinonen and Kaski, *Harmonizable mixture kernels with
    variational Fourier features*, 2019, eqs. 9 and 14)::

        k(x, x') = Re k_LSG(scales y, scales y')
                   sum_ij B_ij exp(2 pi i (frequency_i^T y - frequency_j^T y')),
        k_LSG(y, y') = exp(-2 pi^2 m^T envelope m) exp(-2 pi^2 t^T lag t),

    m being the mean of y and y', t their difference. This is a process of Q frequencies, seen
    through a window of width ``envelope^(-1/2) / (2 pi)``. B says how the amplitudes vary together;
    they lose their memory over a lag of ``lag^(-1/2) / (2 pi)``.

    The kernel is valid where ``lag >= envelope / 4`` (the paper does not say so) and B is
    positive semi-definite. Both hold for every value of the unconstrained parameters: what is
    stored is ``envelope``, ``excess = lag - envelope / 4``, and W with ``B = W W^H``. (Written
    with these, k_LSG is a window ``exp(-pi^2 y^T envelope y)`` at either input, times a squared
    exponential of t whose precision is ``excess``.) The paper's ``phi^T B phi`` lacks a conjugate.

    **Other kernels of its Table 1, and of its Theorem 3,** which takes any locally stationary
    kernel in place of k_LSG:

    - ``local="matern32"`` (or 12, 52): the squared exponential of t becomes a product over columns
      of Matern functions with its lengthscales, ``excess^(-1/2) / (2 pi)``, so that functions are
      rough wherever the window is. It is valid for the same parameters. The spectra are Voigt
      profiles, in closed form for windows and lags that are numbers or diagonals.
    - ``envelope=None``: no window. With two frequencies and ``amplitudes=variance * np.ones((2,
      2))`` it is a generalized spectral kernel (GSK: Samo 2017), with a Matern ``local`` too; with
      one, a spectral mixture's component (SM; squared exponential at zero, SE). With a window these
      amplitudes make the Gaussian mixture in the pair of frequencies of Samo and Roberts (2015).
    - The sparse spectrum kernel (SS) is a sum of ``gpflow.kernels.Cosine``.

    What has no closed form: the generalized spectral *density* without a window (all mass is on the
    lines ``w - v = frequency_i - frequency_j``; the Wigner distribution has a density, but for SS);
    both spectra of a Matern ``local`` that depends on t through one distance in several columns;
    Fourier features of other components than Gaussian windows times squared exponentials; and the
    generalized spectral mixture (GSM: Remes et al. 2017), whose frequencies depend on x.

    :param frequencies: ``[Q, D]``, in cycles per unit of x.
    :param amplitudes: B: one number for each frequency ``[Q]``, its diagonal; or a Hermitian
        matrix ``[Q, Q]``, positive semi-definite, real or complex. ``1 / Q`` each by default, for a
        variance of one at the centre. A real B stays real in training, a complex one complex.
    :param centre: ``[D]``, or a number for all dimensions.
    :param scales: The paper's gamma, ``[D]`` or a number. Not trained by default: ``envelope`` and
        ``lag`` can have any scale.
    :param envelope: Sigma_1: a number, a diagonal ``[D]`` or a matrix ``[D, D]``. Training keeps
        this form. Or None, for no window.
    :param lag: Sigma_2, in one of the same forms.
    :param local: The function of t: "gaussian", "matern12", "matern32" or "matern52".
    :ivar excess: ``lag - envelope / 4``, in the more general of their two forms.
    :raises ValueError: If shapes do not fit, an entry is not finite, a matrix is not positive
        definite, lag is not above envelope / 4, or one is a matrix though ``local`` is a Matern.
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
        """Sigma_2 ``= excess + envelope / 4``, in the form of ``excess``."""
        if self.envelope is None:
            return tf.convert_to_tensor(self.excess)
        envelope = tf.convert_to_tensor(self.envelope)
        if self.excess.shape.rank == 2 and envelope.shape.rank < 2:
            envelope *= tf.eye(self.dimension, dtype=envelope.dtype)
        return self.excess + envelope / 4

    @property
    def amplitudes(self) -> tf.Tensor:
        """B ``[Q, Q]``, complex if the kernel was made with a complex one."""
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
        """p, of Matern functions of order p + 1/2."""
        return None if self.local == "gaussian" else _LOCAL.index(self.local) - 1

    def validate_transform(self) -> None:
        """:raises NotImplementedError: If there is no closed form of f's Fourier transform."""
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

        :param w: Frequencies, in cycles per unit of x, and so is v.
        :return: Complex.
        :raises NotImplementedError: Without a window: the distribution has no density.
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
        """The Wigner distribution: how much of each frequency there is at each place.

        ``W(x, w) = int k(x + t/2, x - t/2) exp(-2 pi i w^T t) dt``; eqs. 18 to 20, with the factor
        B_ij that eq. 19 lacks, inside the real part (B may be complex). It can be negative.

        :param x: Places, on the kernel's active columns.
        :param w: Frequencies, in cycles per unit of x.
        """
        return wigner(self.tensors(), _tensor(x) - self.centre, _tensor(w), self._order)

    def tensors(self) -> ComponentTensors:
        """The values of the parameters, with the scales in envelope and excess."""
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
    """W ``[Q, Q]`` with ``B = W W^H``.

    :raises ValueError: If B is not a variance for each frequency, nor a matrix that is Hermitian,
        positive semi-definite and not zero.
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
