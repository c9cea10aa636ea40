"""Formats of ``evalkit export``: a module for each, and a table of formats."""
