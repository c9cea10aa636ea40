"""Thin widgets over evalkit.review; no decision is taken here."""
