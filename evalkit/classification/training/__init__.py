"""Training of the embedded model; evalkit never imports it when it runs."""
