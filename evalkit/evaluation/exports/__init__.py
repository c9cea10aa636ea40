"""Formats of ``evalkit export``: one module each, and a table (``formats``)."""
