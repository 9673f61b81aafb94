"""OpenAI's batches at the gateway: files of questions, answered within a day while nobody else asks."""
