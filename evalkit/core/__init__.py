"""Checked records, clocks, log events, safe reading: basics of every package."""
