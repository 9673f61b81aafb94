"""The generator: vLLM's own OpenAI-compatible server, prepared and launched. No code of ours is in the request path."""
