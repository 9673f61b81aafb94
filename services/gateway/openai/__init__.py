"""OpenAI's chat API at the gateway: whoever speaks it can ask the mesh."""
