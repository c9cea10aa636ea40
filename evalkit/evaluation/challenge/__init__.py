"""Mutation testing of the verifiers: inject one fault at a time, see who detects."""

from evalkit.evaluation.challenge.mutation_testing import challenge, run_mutation_test

__all__ = ["challenge", "run_mutation_test"]
