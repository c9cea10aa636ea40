"""Learning of the embedded model: never imported when evalkit runs."""
