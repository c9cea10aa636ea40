"""Mutation testing of the verifiers: inject one fault at a time and report who detects it."""

from evalkit.evaluation.challenge.mutation_testing import challenge, run_mutation_test

__all__ = ["challenge", "run_mutation_test"]
