"""Tiao, Dutordoir & Picheny 2023, "Spherical inducing features for orthogonally-decoupled
Gaussian processes": activation features, with the orthogonal points of SOLVE-GP."""
