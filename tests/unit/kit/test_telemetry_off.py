"""What libraries would tell their makers, they do not."""

import os
import subprocess
import sys


def test_onnx_runtime_reports_to_nobody() -> None:
    # It complains of a home without a place for its device's id, if it is to report.
    env = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | {
        "HOME": "/proc/none"
    }
    command = (sys.executable, "-c", "import services.kit.onnx_backend")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert "telemetry" not in done.stderr
