"""The expert's screen, in Voilà and in JupyterLab; see ``widgets/README.md``."""
