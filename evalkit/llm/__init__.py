"""Questions to language models, and their validated answers."""
