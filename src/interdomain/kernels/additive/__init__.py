"""Sums of effects of a table's columns: which column does what, and which of them together."""
