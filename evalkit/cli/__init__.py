"""The command line: one file per group of commands, and the tables they print."""

from evalkit.cli.app import app, main

__all__ = ["app", "main"]
