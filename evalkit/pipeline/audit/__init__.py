"""Draw accepted documents for audits, list who decided what, verify that no file was altered."""
