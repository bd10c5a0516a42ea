"""Fits of millions of rows: what they cost, and where the seconds go."""
