"""Training of the embedded model; running and reviewing never import it."""
