"""Draw documents for audits, list decisions, verify that no file was altered."""
