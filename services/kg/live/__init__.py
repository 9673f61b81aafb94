"""The live backend: programs over a running CRAG mock API, which is how the benchmark serves its graph."""
