"""Gaussian sites that stand for the likelihood of each row, and the q that they make.

They serve :class:`interdomain.models.DualSVGP`; its training is in
:func:`interdomain.fit`.
"""

__all__: list[str] = []
