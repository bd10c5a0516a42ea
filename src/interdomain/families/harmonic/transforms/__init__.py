"""Cyclic transformations of inputs and their products (Sun et al. 2021), independent of GPflow."""
