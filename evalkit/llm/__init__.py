"""A question becomes a validated answer."""
