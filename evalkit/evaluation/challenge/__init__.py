"""Mutation-test the verifiers: plant one fault at a time into a right answer and report who detects it."""

from evalkit.evaluation.challenge.mutation_testing import challenge, run_mutation_test

__all__ = ["challenge", "run_mutation_test"]
