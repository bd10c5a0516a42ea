"""How rows become sums, and how sums become q: one protocol, and an implementation in a file each.

:mod:`interdomain.sums.protocol` is the protocol. Its implementations are dense matrices
(:mod:`.dense`), tables of waves (:mod:`.waves`), sparse splines (:mod:`.splines`) and rows that are
whitened by their neighbours (:mod:`.whitened`). A family names the structure of its features, and
the models hold one object of the protocol, whichever it is.
"""

__all__: list[str] = []
