"""Mutation testing of the verifiers: plant one fault at a time, count detections."""

from evalkit.evaluation.challenge.mutation_testing import challenge

__all__ = ["challenge"]
