"""How good everything is: ground truth as data, and cases whose right answer is known because they were made.

Who makes such cases (``alterations``) knows nothing of what is measured with them.
"""

from evalkit.evaluation.alterations import Kind, Noised, NoiseKind, Planted, noise, plant, planted_pages
from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import load_ground_truth

__all__ = [
    "Kind",
    "NoiseKind",
    "Noised",
    "Planted",
    "export_ground_truth",
    "load_ground_truth",
    "noise",
    "plant",
    "planted_pages",
]
