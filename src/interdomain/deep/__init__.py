"""Deep Gaussian processes: GPflux layers with any inducing variables of this library.

This package needs GPflux, ``pip install interdomain[deep]``, and is imported on demand::

    import interdomain as idm
    from interdomain import deep

    model = deep.build(X, widths=[5, 1])
    idm.fit(model, (X, Y), batch_size=256)
    mean, variance = model.predict_y(Xnew, num_samples=64)

The layers work in ``gpflux.models.DeepGP`` and in models of tf_keras, as GPflux's own layers do.
This package imports kernels, features and models by their public names.
"""

try:
    import gpflux
except ImportError as error:
    raise ImportError(
        "interdomain.deep needs GPflux, which cannot be imported; install it by "
        "pip install 'interdomain[deep]'."
    ) from error

from .build import build
from .convolutional import ConvolutionalLayer
from .layer import Layer
from .model import DeepGP

del gpflux

__all__ = ["ConvolutionalLayer", "DeepGP", "Layer", "build"]
