"""SVGP with a q that is an object: joint, one per block (HVGP, on devices), or orthogonal."""

__all__: list[str] = []
