"""Provide pages with text that addresses a model or a program, and look-alikes."""
