"""Sums of effects of a table's columns, and products of functions of columns as their features."""
