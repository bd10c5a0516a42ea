"""Van der Wilk, Rasmussen & Hensman 2017, "Convolutional Gaussian processes"."""
