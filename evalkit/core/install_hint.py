"""Installation command for optional features (extras of ``pyproject.toml``)."""


def format_install_hint(extra: str) -> str:
    """Format the command that installs an extra, for the remedy of an error.

    The command installs from evalkit's source and lock file, because ``evalkit`` on PyPI is another project.

    >>> format_install_hint("s3")
    "make install EXTRAS=s3 in the folder of evalkit's source"
    """
    return f"make install EXTRAS={extra} in the folder of evalkit's source"
