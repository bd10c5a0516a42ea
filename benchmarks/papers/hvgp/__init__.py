"""Sun, Shi, Wilson & Grosse 2021, "Scalable variational Gaussian processes via harmonic kernel
decomposition": HVGP."""
