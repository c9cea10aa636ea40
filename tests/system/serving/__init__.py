"""One package: its server ends with its last test, and not with the session."""
