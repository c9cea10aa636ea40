"""Packets with drawn identities, and the truth of what is printed on each of their pages."""
