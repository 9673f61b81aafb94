"""Training data of our own: questions, facts, answers and programs from patterns; the same seed makes the same data."""
