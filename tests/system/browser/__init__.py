"""One package: its server and its browser end with its last test, and not with the session."""
