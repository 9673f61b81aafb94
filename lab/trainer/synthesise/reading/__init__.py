"""Passages in prose by a language model, with questions that they answer and questions that they leave open."""
