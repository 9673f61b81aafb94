"""A model from a hub to a folder, run by vLLM's interpreter: `python -m services.generator.hub NAME OUT`."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

# Weights in safetensors, and what goes with them: no pickles, no code.
FILES = ("*.safetensors", "*.safetensors.index.json", "*.json", "*.txt", "*.jinja", "*.model")


def main() -> None:
    """Parse the name and the folder, and download."""
    parser = argparse.ArgumentParser(prog="python -m services.generator.hub")
    parser.add_argument("name")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    hub: Any = import_module("huggingface_hub")
    hub.snapshot_download(arguments.name, local_dir=arguments.out, allow_patterns=list(FILES))


if __name__ == "__main__":
    main()
