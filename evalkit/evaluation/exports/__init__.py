"""Formats of ``evalkit export``: a module each, and one table of them (``formats``)."""
