"""A model from a hub to a folder, run by vLLM's interpreter: `python -m services.generator.hub NAME OUT`."""

import sys
from importlib import import_module
from typing import Any

# Weights in safetensors, and what goes with them: no pickles, no code.
FILES = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.jinja", "*.model")


def download(name: str, out: str) -> None:
    hub: Any = import_module("huggingface_hub")
    hub.snapshot_download(name, local_dir=out, allow_patterns=list(FILES))


if __name__ == "__main__":
    download(*sys.argv[1:])
