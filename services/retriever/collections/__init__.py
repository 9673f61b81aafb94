"""Collections: corpora that outlive a request, in Qdrant."""
