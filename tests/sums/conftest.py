"""The rows and models of tests/row_fixtures.py."""

from tests.row_fixtures import equal, make_model, rows, whole

__all__ = ["equal", "make_model", "rows", "whole"]
