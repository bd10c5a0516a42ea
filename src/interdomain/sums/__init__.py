"""Sums over rows, and q computed from the sums: one protocol, and one file per implementation.

:mod:`interdomain.sums.protocol` is the protocol. Its implementations are dense matrices
(:mod:`.dense`), tables of waves (:mod:`.waves`), sparse splines (:mod:`.splines`), splines of time
times features of space (:mod:`.chain`), intercepts of groups (:mod:`.group_sums`) and rows whitened
by their neighbours (:mod:`.whitened`). A family chooses the structure of its features, and a model
has one object of the protocol.
"""

__all__: list[str] = []
