"""Training data that is made up."""
