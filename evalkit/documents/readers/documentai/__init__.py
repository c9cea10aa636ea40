"""The reader that asks Google's Document AI."""
