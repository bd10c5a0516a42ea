"""SVGP with one q, a q per block, each on a device of its own (HVGP), or orthogonal q's."""

__all__: list[str] = []
