"""The Model Context Protocol at the gateway: agents ask, search and look things up, and see the collections."""
