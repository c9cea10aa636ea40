"""Audits: which accepted documents a person checks, who decided what, and whether all files are as they were left."""
