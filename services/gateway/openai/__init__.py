"""OpenAI's chat API at the gateway, for all of its clients."""
