"""Training of the built-in model; running and reviewing never import it."""
