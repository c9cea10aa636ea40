"""The expert's screen as Jupyter widgets; see ``widgets/README.md``."""
