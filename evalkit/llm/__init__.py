"""Ask questions, and get validated answers."""
