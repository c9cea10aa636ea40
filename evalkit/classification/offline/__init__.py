"""Built-in model, which classifies without a network or language model.

It weighs words and signs of a page by learned weights.
"""
