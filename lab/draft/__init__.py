"""The draft of a domain from CSV tables: kinds, keys, types, units and joins guessed, all of it to be edited."""

from lab.draft.folder import DraftError, draft

__all__ = ["DraftError", "draft"]
