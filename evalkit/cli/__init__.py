"""The command line: one module per group of commands; ``render`` prints results."""

from evalkit.cli.app import app, main

__all__ = ["app", "main"]
