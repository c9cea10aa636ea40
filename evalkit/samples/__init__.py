"""The demo's documents: invented clinical PDFs, drawn by evalkit.

Their text is data in ``content/``: one TOML file per document, ``classifications/`` (answers of an invented other
system), ``expected.toml`` (the decisions that a run should make), ``production.csv`` (labels of an invented production
classifier) and ``truth.csv`` (the true labels).
"""

from evalkit.samples.demo_folder import write_demo_folder

__all__ = ["write_demo_folder"]
