"""Extraction of fields from clinical reports and tax forms (task 2)."""
