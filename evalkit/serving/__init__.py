"""The expert's screen in the browser: Voilà on one notebook, behind a login.

``evalkit review`` (:mod:`~evalkit.serving.launch`) binds a port of this machine and becomes a server process with an
environment of its own (:mod:`~evalkit.serving.__main__`). The server (:mod:`~evalkit.serving.server`) has eight routes and
no more, or nine if JupyterHub logs reviewers in (:mod:`~evalkit.serving.jupyterhub_login`); without a login all but the
login page are refused. One kernel per open page runs the notebook; :mod:`~evalkit.serving.page` is the kernel's side.
``examples/`` is what `evalkit review --example` prints.

Plain ``voila notebooks/sme_review.ipynb`` has no login and must not be used: it sets no ``HTTP_X_REVIEWER``, and the
workbench refuses to open.
"""
