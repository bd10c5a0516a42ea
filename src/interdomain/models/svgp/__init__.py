"""SVGPs with a q that is an object: joint, one for each block (HVGP, on devices), or orthogonal."""

__all__: list[str] = []
