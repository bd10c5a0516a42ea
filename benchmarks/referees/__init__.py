"""Answers that others have computed, beside the same models here."""
