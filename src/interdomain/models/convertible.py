"""The base class of models that can become a stock SVGP."""

from __future__ import annotations

import gpflow
import tensorflow as tf

from .rows_model import RowsModel


class ConvertibleModel(RowsModel):
    """A model that can become a stock SVGP, because predictions need only its q."""

    def to_svgp(self) -> gpflow.models.SVGP:
        """Make a stock ``gpflow.models.SVGP`` with the present q, whitened.

        The SVGP can serve predictions, or be trained further with minibatches. It holds no data,
        and shares kernel, likelihood, mean function and inducing variable with this model.

        :raises ValueError: For more than 4,096 splines or groups, which have no dense q.
        """
        q_mu, q_sqrt = self._whitened_q()
        num_latents = self.num_latent_gps
        return gpflow.models.SVGP(
            self.kernel,
            self.likelihood,
            self.inducing_variable,
            mean_function=self.mean_function,
            num_latent_gps=num_latents,
            q_mu=q_mu,
            q_sqrt=tf.tile(q_sqrt, [num_latents // q_sqrt.shape[0], 1, 1]),
            whiten=True,
            num_data=self.num_data,
        )
