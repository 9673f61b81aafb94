"""How much of the mesh is needed: a queueing model, a plan made with it, and a Qdrant cluster."""
