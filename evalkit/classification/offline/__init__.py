"""The embedded model, which needs no network: words and signs, weighed by numbers that were learned."""
