"""The shared kernel: what every service needs to be one, and nothing that only one of them needs."""

import os

# ONNX Runtime's wheels report to their maker, from their import on, unless they are told before it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
