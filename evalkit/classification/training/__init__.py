"""Training of the embedded model; nothing that runs or reviews documents imports it."""
