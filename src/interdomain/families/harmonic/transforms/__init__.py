"""Cyclic transformations of the input and their products (Sun et al. 2021), without GPflow."""
