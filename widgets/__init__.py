"""The expert's screen as Jupyter widgets, for Voilà and JupyterLab; see ``widgets/README.md``."""
