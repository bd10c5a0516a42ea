"""Every inducing variable in every GPflow consumer, compared with a dense stock computation."""
