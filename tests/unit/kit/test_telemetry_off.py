"""What libraries would tell their makers, they do not."""

import os
import subprocess
import sys


def test_onnx_runtime_reports_to_nobody() -> None:
    # It complains of a home without a place for its device's id, if it is to report.
    env = dict(os.environ, HOME="/proc/none")
    env.pop("ORT_DISABLE_TELEMETRY", None)
    command = (sys.executable, "-c", "import services.kit.onnx_backend")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert "telemetry" not in done.stderr
