"""The benchmark of published answers, of mgcv and Stan, for models of this library."""
