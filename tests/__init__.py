"""Tests. A package, because GPflow's wheel installs a package `tests` that would be found first."""
