"""A training step of HVGP beside SVGP, GPflow's own route and GPyTorch."""
