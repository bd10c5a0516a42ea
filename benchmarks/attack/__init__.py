"""Random models whose covariances, bounds and gradients are checked."""
