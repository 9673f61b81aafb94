"""The evaluator: asks a running mesh, judges as CRAG does, reports with intervals."""
