"""Mathematics of the sphere S^{d-1}, independent of GPflow: spherical harmonics, zonal series,
eigenvalues, and points on the globe."""
