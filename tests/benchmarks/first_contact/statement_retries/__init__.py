"""Statements with a template that misreads them in one way, from which the review has to find the right one."""
