"""Mathematics of the sphere S^{d-1}, independent of GPflow: harmonics, zonal series, eigenvalues,
and points of the globe."""
