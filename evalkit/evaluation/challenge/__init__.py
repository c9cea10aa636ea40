"""Mutation testing of the verifiers: one planted fault at a time, and its detection."""

from evalkit.evaluation.challenge.mutation_testing import challenge, run_mutation_test

__all__ = ["challenge", "run_mutation_test"]
