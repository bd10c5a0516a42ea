"""The harmonic decomposition of kernels (HVGP), kernels of invariant functions (Invariant), and
inducing points for both. The subpackage ``transforms`` does not depend on GPflow."""
