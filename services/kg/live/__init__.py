"""The live backend: programs over a running CRAG mock API, which is how the benchmark serves its graph."""

from services.kg.live.execute import LiveExecutor

__all__ = ["LiveExecutor"]
