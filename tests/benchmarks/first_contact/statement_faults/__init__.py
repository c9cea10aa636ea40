"""Faults planted in templates and in statements, in two halves of different mechanisms."""
