"""Mutation testing of the verifiers: plant one fault at a time, count detections."""

from evalkit.evaluation.challenge.mutation_testing import challenge, run_mutation_test

__all__ = ["challenge", "run_mutation_test"]
