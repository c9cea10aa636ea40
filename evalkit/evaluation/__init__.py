"""Measuring evalkit itself: cases whose right answer is known because they were made, blindly to what is measured."""

from evalkit.evaluation.alterations import Kind, Noised, NoiseKind, Planted, noise, plant, planted_pages

__all__ = ["Kind", "NoiseKind", "Noised", "Planted", "noise", "plant", "planted_pages"]
