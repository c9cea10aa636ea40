"""The expert's screen, in Voilà and in JupyterLab. Thin: no decision is taken here, but in ``evalkit.review``."""
