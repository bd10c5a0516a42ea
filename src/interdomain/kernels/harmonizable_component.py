"""One component of a harmonizable mixture: Shen, Heinonen and Kaski 2019."""

from __future__ import annotations

import math

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.utilities import positive

from .columns import select_columns
from .gaussian_factors import (
    definite_parameter,
    gaussian_of_lag,
    normal_density,
    normal_density_of_differences,
    outer_product,
    phases,
    scaled_matrix,
    scaled_root,
)
from .spectral_arguments import (
    excess_of_lag,
    finite_array,
    per_column,
    root_of_amplitudes,
    validate_definite,
)


class HarmonizableComponent(gpflow.kernels.Kernel):
    """Sinusoids under a Gaussian window: a non-stationary kernel with a spectrum in closed form.

    With ``y = x - centre`` (Shen, Heinonen and Kaski, *Harmonizable mixture kernels with
    variational Fourier features*, 2019, eqs. 9 and 14):

        k(x, x') = Re k_LSG(scales y, scales y')
                   sum_ij B_ij exp(2 pi i (frequency_i^T y - frequency_j^T y')),
        k_LSG(y, y') = exp(-2 pi^2 m^T envelope m) exp(-2 pi^2 t^T lag t),

    m being the mean of y and y', t their difference. That is a process of Q frequencies, whose
    amplitudes vary together as B says and lose their memory over a lag of ``lag^(-1/2) / (2 pi)``,
    seen through a window of that width in ``envelope``.

    The kernel is valid where ``lag >= envelope / 4`` (the paper does not say so) and B is
    positive semi-definite. Both hold for every value of the unconstrained parameters: what is
    stored is ``envelope``, ``excess = lag - envelope / 4``, and a W with ``B = W W^H``. (Written
    with these, k_LSG is a window ``exp(-pi^2 y^T envelope y)`` at either input, times a squared
    exponential whose precision is ``excess``.) The paper's ``phi^T B phi`` lacks a conjugate.

    :param frequencies: ``[Q, D]``, in cycles per unit of x.
    :param amplitudes: B: one number for each frequency ``[Q]``, its diagonal; or a Hermitian
        matrix ``[Q, Q]``, positive semi-definite, real or complex. ``1 / Q`` each by default, for a
        variance of one at the centre. Whether it is complex stays as it is here.
    :param rank: The number R of columns of W; Q by default.
    :param centre: ``[D]``, or a number for all dimensions.
    :param scales: The paper's gamma, ``[D]`` or a number. Not trained by default: ``envelope`` and
        ``lag`` can have any scale.
    :param envelope: Sigma_1: a number, a diagonal ``[D]`` or a matrix ``[D, D]``, which it stays.
    :param lag: Sigma_2, in one of the same forms.
    :ivar excess: ``lag - envelope / 4``, in the richer form of the two.
    :raises ValueError: If shapes do not fit, an entry is not finite, a matrix is not positive
        definite, or lag is not above envelope / 4.
    """

    def __init__(
        self,
        frequencies: TensorType,
        *,
        amplitudes: TensorType | None = None,
        rank: int | None = None,
        centre: TensorType = 0.0,
        scales: TensorType = 1.0,
        envelope: TensorType = 0.1,
        lag: TensorType = 0.1,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        values = finite_array("frequencies", frequencies, (2,), "a matrix [Q, D]")
        if 0 in values.shape:
            raise ValueError(f"frequencies must be [Q, D], found shape {values.shape}.")
        count, dimension = values.shape
        self.frequencies = gpflow.Parameter(values, name="frequencies")
        self.centre = gpflow.Parameter(per_column("centre", centre, dimension), name="centre")
        columns = per_column("scales", scales, dimension)
        if not np.all(columns > 0):
            raise ValueError(f"scales must be positive, found {columns}.")
        self.scales = gpflow.Parameter(
            columns, transform=positive(), trainable=False, name="scales"
        )
        root = root_of_amplitudes(amplitudes, count, rank)
        self.amplitudes_real = gpflow.Parameter(root.real, name="amplitudes_real")
        self.amplitudes_imaginary = (
            gpflow.Parameter(root.imag, name="amplitudes_imaginary")
            if np.iscomplexobj(root)
            else None
        )
        window = validate_definite("envelope", envelope, dimension)
        self.envelope = definite_parameter(window, "envelope")
        excess = excess_of_lag(window, validate_definite("lag", lag, dimension), dimension)
        self.excess = definite_parameter(excess, "excess")

    @property
    def num_frequencies(self) -> int:
        """The number Q of frequencies."""
        return int(self.frequencies.shape[0])

    @property
    def dimension(self) -> int:
        """The number D of columns the kernel works on."""
        return int(self.frequencies.shape[1])

    @property
    def lag(self) -> tf.Tensor:
        """Sigma_2 ``= excess + envelope / 4``, in the form of ``excess``."""
        envelope = tf.convert_to_tensor(self.envelope)
        if self.excess.shape.rank == 2 and envelope.shape.rank < 2:
            envelope = scaled_matrix(envelope, tf.ones([self.dimension], envelope.dtype))
        return self.excess + envelope / 4

    def scaled_lag(self) -> tf.Tensor:
        """Sigma_2 in units of x, ``diag(scales) lag diag(scales)`` ``[D, D]``."""
        return scaled_matrix(self.lag, self.scales)

    @property
    def amplitudes(self) -> tf.Tensor:
        """B ``[Q, Q]``, complex if the kernel was made with a complex one."""
        real, imaginary = self._amplitudes()
        return real if imaginary is None else tf.complex(real, imaginary)

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        Y = self._centred(X)
        features = self._windowed_features(Y)
        root = scaled_root(self._excess_tensor(), self.scales)
        if X2 is None:
            product = tf.linalg.matmul(features, features, transpose_b=True)
            return gaussian_of_lag(Y, None, root) * product
        Y2 = self._centred(X2)
        return gaussian_of_lag(Y, Y2, root) * outer_product(features, self._windowed_features(Y2))

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.reduce_sum(tf.square(self._windowed_features(self._centred(X))), axis=-1)

    @check_shapes(
        "w: [n, D]",
        "v: [k, D]",
        "return: [n, k]",
    )
    def generalized_spectral_density(self, w: TensorType, v: TensorType) -> tf.Tensor:
        """S(w, v), the covariance of the process's Fourier transforms at two frequencies.

        ``k(x, x') = int int exp(2 pi i (w^T x - v^T x')) S(w, v) dw dv``; eqs. 15 to 17, for the
        real part.

        :param w: Frequencies, in cycles per unit of x.
        :param v: As w.
        :return: Complex.
        """
        w, v = _tensor(w), _tensor(v)
        real, imaginary = self.density_about_centre(w, v)
        centre = self.centre[None, :]
        turn = phases(w, centre) - tf.transpose(phases(v, centre))
        rotation = tf.exp(tf.complex(tf.zeros_like(turn), -turn))
        return tf.complex(real, tf.zeros_like(real) if imaginary is None else imaginary) * rotation

    @check_shapes(
        "x: [n, D]",
        "w: [k, D]",
        "return: [n, k]",
    )
    def wigner(self, x: TensorType, w: TensorType) -> tf.Tensor:
        """The Wigner distribution: how much of each frequency there is at each place.

        ``W(x, w) = int k(x + t/2, x - t/2) exp(-2 pi i w^T t) dt``; eqs. 18 to 20, with the factor
        B_ij that eq. 19 lacks, inside the real part (B may be complex). It can be negative.

        :param x: Places, on the kernel's active columns.
        :param w: Frequencies, in cycles per unit of x.
        """
        y, w = _tensor(x) - self.centre, _tensor(w)
        scaled = scaled_matrix(tf.convert_to_tensor(self.envelope), self.scales)
        window = tf.exp(-2 * math.pi**2 * tf.reduce_sum(tf.linalg.matmul(y, scaled) * y, axis=-1))
        means = (self.frequencies[:, None, :] + self.frequencies[None, :, :]) / 2
        means = tf.reshape(means, [-1, self.dimension])
        lag = self.scaled_lag()
        density = normal_density_of_differences(w, means, lag)
        density = (density + normal_density_of_differences(-w, means, lag)) / 2
        real, imaginary = self._amplitudes()
        angle = phases(y, self.frequencies)
        difference = angle[:, :, None] - angle[:, None, :]
        power = real * tf.cos(difference)
        if imaginary is not None:
            power -= imaginary * tf.sin(difference)
        power = tf.reshape(power, [-1, self.num_frequencies**2])
        return window[:, None] * tf.linalg.matmul(power, density, transpose_b=True)

    @check_shapes(
        "w: [n, D]",
        "v: [k, D]",
        "return[0]: [n, k]",
    )
    def density_about_centre(
        self, w: tf.Tensor, v: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Real and imaginary part of the density of the process about its centre.

        The kernel being a real part, ``(S(w, v) + conj S(-w, -v)) / 2`` with the sums of eq. 16.
        There is no imaginary part (None) if B is real.
        """
        real, imaginary = self._spectral_sums(w, v)
        other_real, other_imaginary = self._spectral_sums(-w, -v)
        real = (real + other_real) / 2
        if imaginary is None or other_imaginary is None:
            return real, None
        return real, (imaginary - other_imaginary) / 2

    def _spectral_sums(self, w: tf.Tensor, v: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Real and imaginary part of ``sum_ij B_ij N((p + q)/2 | 0, lag) N(p - q | 0, envelope)``,
        ``p = w - frequency_i``, ``q = v - frequency_j``."""
        p = tf.reshape(w[:, None, :] - self.frequencies, [-1, self.dimension])
        q = tf.reshape(v[:, None, :] - self.frequencies, [-1, self.dimension])
        lag = self.scaled_lag()
        envelope = scaled_matrix(tf.convert_to_tensor(self.envelope), self.scales)
        densities = normal_density_of_differences(p / 2, -q / 2, lag)
        densities *= normal_density_of_differences(p, q, envelope)
        count = self.num_frequencies
        blocks = tf.reshape(densities, [tf.shape(w)[0], count, tf.shape(v)[0], count])
        real, imaginary = self._amplitudes()
        return (
            tf.einsum("nikj,ij->nk", blocks, real),
            None if imaginary is None else tf.einsum("nikj,ij->nk", blocks, imaginary),
        )

    @check_shapes(
        "w: [m, D]",
        "X: [N, E]",
        "return[0]: [m, N]",
        "return[1]: [m, N]",
    )
    def fourier_covariance(self, w: tf.Tensor, X: TensorType) -> tuple[tf.Tensor, tf.Tensor]:
        """The covariances of f(x) with the real and with the imaginary part of the Fourier
        transform of f about the centre, ``int f(x + centre) exp(-2 pi i w^T x) dx``.

        For ``a = lag + envelope / 4`` and ``T = a^-1 excess``, the paper's eqs. 63 and 64 put
        right are sums over the frequencies i of ``N(w - frequency_i | 0, a)`` and
        ``exp(-2 pi i (w - frequency_i)^T T y)``: a product of matrices ``[m, Q]`` and ``[Q, N]``,
        turned by ``exp(-2 pi i w^T T y)``. The real part of the kernel takes the mean over w and
        -w, which adds and subtracts the densities and leaves everything else.

        :param w: Frequencies.
        :param X: Inputs; the active columns are selected here.
        """
        y = self._centred(X)
        excess = scaled_matrix(self._excess_tensor(), self.scales)
        spread = excess + scaled_matrix(tf.convert_to_tensor(self.envelope), self.scales) / 2
        shrunk = tf.linalg.matmul(y, tf.linalg.solve(spread, excess), transpose_b=True)
        # y^T R y for R = a - b a^-1 b, a and b being spread and excess.
        decay = tf.reduce_sum(
            tf.linalg.matmul(y, spread) * y - tf.linalg.matmul(y, excess) * shrunk, axis=-1
        )
        real, imaginary = self._modulations(y, shrunk)
        window = tf.exp(-2 * math.pi**2 * decay) / 2
        plus, minus = (
            tf.reshape(
                normal_density(
                    tf.reshape(sign * w[:, None, :] - self.frequencies, [-1, self.dimension]),
                    spread,
                ),
                [-1, self.num_frequencies],
            )
            for sign in (1, -1)
        )
        even = tf.linalg.matmul(plus + minus, window * real)
        odd = tf.linalg.matmul(plus - minus, window * imaginary)
        turn = phases(w, shrunk)
        cosine, sine = tf.cos(turn), tf.sin(turn)
        return cosine * even + sine * odd, cosine * odd - sine * even

    def _modulations(self, y: tf.Tensor, shrunk: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Real and imaginary part, ``[Q, N]``, of ``exp(2 pi i frequency_i^T shrunk)
        sum_j B_ij exp(-2 pi i frequency_j^T y)``."""
        real, imaginary = self._amplitudes()
        angle = phases(self.frequencies, y)
        cosine, sine = tf.cos(angle), tf.sin(angle)
        inner_real, inner_imaginary = tf.linalg.matmul(real, cosine), -tf.linalg.matmul(real, sine)
        if imaginary is not None:
            inner_real += tf.linalg.matmul(imaginary, sine)
            inner_imaginary += tf.linalg.matmul(imaginary, cosine)
        angle = phases(self.frequencies, shrunk)
        cosine, sine = tf.cos(angle), tf.sin(angle)
        return (
            cosine * inner_real - sine * inner_imaginary,
            cosine * inner_imaginary + sine * inner_real,
        )

    def _amplitudes(self) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Real and imaginary part of ``B = W W^H``."""
        real = tf.convert_to_tensor(self.amplitudes_real)
        square = tf.linalg.matmul(real, real, transpose_b=True)
        if self.amplitudes_imaginary is None:
            return square, None
        imaginary = tf.convert_to_tensor(self.amplitudes_imaginary)
        cross = tf.linalg.matmul(imaginary, real, transpose_b=True)
        square += tf.linalg.matmul(imaginary, imaginary, transpose_b=True)
        return square, cross - tf.linalg.matrix_transpose(cross)

    def _excess_tensor(self) -> tf.Tensor:
        return tf.convert_to_tensor(self.excess)

    def _centred(self, X: TensorType) -> tf.Tensor:
        """:raises ValueError: If X has not the number of columns of the frequencies."""
        X = select_columns(self, X)
        if X.shape[-1] != self.dimension:
            raise ValueError(
                f"X must have {self.dimension} columns, as frequencies have, found {X.shape[-1]}; "
                "select columns with active_dims."
            )
        return X - self.centre

    def _windowed_features(self, Y: tf.Tensor) -> tf.Tensor:
        """``[..., N, 2 R]``, the window times real and imaginary part of ``W^T exp(2 pi i mu y)``;
        their products are what multiplies the squared exponential."""
        scaled = scaled_matrix(tf.convert_to_tensor(self.envelope), self.scales)
        window = tf.exp(-(math.pi**2) * tf.reduce_sum(tf.linalg.matmul(Y, scaled) * Y, axis=-1))
        angle = phases(Y, self.frequencies)
        cosine, sine = tf.cos(angle), tf.sin(angle)
        real = tf.linalg.matmul(cosine, self.amplitudes_real)
        imaginary = tf.linalg.matmul(sine, self.amplitudes_real)
        if self.amplitudes_imaginary is not None:
            real -= tf.linalg.matmul(sine, self.amplitudes_imaginary)
            imaginary += tf.linalg.matmul(cosine, self.amplitudes_imaginary)
        return window[..., None] * tf.concat([real, imaginary], axis=-1)


def _tensor(value: TensorType) -> tf.Tensor:
    return tf.cast(tf.convert_to_tensor(value), gpflow.default_float())
