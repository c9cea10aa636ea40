"""Basics of every package: validated records, clocks, log events, safe reading."""
