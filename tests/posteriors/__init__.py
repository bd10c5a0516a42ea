"""Tests of interdomain.posteriors."""
