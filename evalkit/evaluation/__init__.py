"""Evaluation: ground truth as tables and exports, and quality metrics."""

from evalkit.evaluation.export import export_ground_truth
from evalkit.evaluation.ground_truth_table import load_ground_truth

__all__ = ["export_ground_truth", "load_ground_truth"]
