"""`cragmesh papers`: weights of `POST /papers` tuned, and the strategy measured step by step, by its own code."""
