"""The demo's documents: hospital papers of no real patient, drawn by evalkit itself.

Everything that is written on them is data in ``content/``: one TOML file per document, ``classifications/`` (what
"another system" is supposed to have answered), ``expected.toml`` (what the pipeline should decide) and
``production.csv``.
"""

from evalkit.samples.demo_folder import write_demo_folder

__all__ = ["write_demo_folder"]
