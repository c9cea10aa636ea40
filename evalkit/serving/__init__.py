"""The expert's screen in the browser: Voilà on one notebook, behind a login.

``evalkit review`` (:mod:`~evalkit.serving.launch`) binds a port of this machine and becomes a server process with an
environment of its own (:mod:`~evalkit.serving.__main__`). The server (:mod:`~evalkit.serving.server`) knows eight
routes and no more, or nine where JupyterHub says who is who (:mod:`~evalkit.serving.jupyterhub_login`); all but the login are refused
without one. One kernel per open page runs the notebook; :mod:`~evalkit.serving.page` is the kernel's side. ``examples/``
is what `evalkit review --example` prints.

Plain ``voila notebooks/sme_review.ipynb`` asks nobody who they are and must not be used: there is no
``HTTP_X_REVIEWER`` then, and the workbench refuses to open.
"""
