"""Basics of every package: checked records, clocks, log events, safe reading of files."""
