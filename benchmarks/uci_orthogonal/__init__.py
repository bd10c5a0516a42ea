"""UCI regression with orthogonal inducing variables."""
