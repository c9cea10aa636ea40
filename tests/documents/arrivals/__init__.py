"""Files as they arrive at hospitals, sound and nasty, with what must become of each."""
