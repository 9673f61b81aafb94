"""Small adapters of the generator's model: what they learn from, and how they are trained."""
