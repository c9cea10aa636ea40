"""Audits: log of decisions, hashes of records, check for altered files."""
