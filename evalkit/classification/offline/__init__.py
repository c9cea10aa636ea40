"""The embedded model, which needs no network.

Words and signs, weighed by numbers that were learned.
"""
