"""The demo's documents: hospital papers of no real patient, drawn by evalkit.

Their text is data in ``content/``: one TOML file per document, ``classifications/`` (answers of a supposed other system),
``expected.toml`` (the decisions that the pipeline should make), ``production.csv`` and ``truth.csv``.
"""

from evalkit.samples.demo_folder import write_demo_folder

__all__ = ["write_demo_folder"]
