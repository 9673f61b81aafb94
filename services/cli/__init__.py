"""The command line: starts and stops the embedded mesh, and asks it questions."""
