"""Mixtures of waves whose frequencies change from place to place, or do not, and their Fourier
features (Shen et al. 2019)."""
