"""Fits that are killed at random moments and have to end with the same bits."""
