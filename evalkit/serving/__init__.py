"""Web server of the review screen: Voilà on one notebook, behind a login.

``evalkit review`` (:mod:`~evalkit.serving.launch`) binds a local port and turns into the server process, with a minimal
environment (:mod:`~evalkit.serving.__main__`). The server (:mod:`~evalkit.serving.server`) has exactly nine routes, or
ten if JupyterHub logs reviewers in (:mod:`~evalkit.serving.jupyterhub_login`); without a login, only the login page and
the health check are available. Each open page has its own kernel process, which runs the notebook; :mod:`~evalkit.serving.page` is the code
that the kernel shares with the server. ``examples/`` holds the configurations printed by ``evalkit review --example``.

Do not run ``voila notebooks/sme_review.ipynb`` directly: it has no login and sets no ``HTTP_X_REVIEWER``, so the review
screen refuses to open.
"""
