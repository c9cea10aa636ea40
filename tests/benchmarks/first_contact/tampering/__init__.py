"""Tampering with an output folder so that a dossier looks better, by an author who has not read what finds it."""
