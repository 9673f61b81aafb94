"""Keys of what a point carries beside its vectors."""

DOCUMENT = "document"
CHUNK = "chunk"
TITLE = "title"
URL = "url"
TEXT = "text"
START = "start"
END = "end"
FIELDS = "fields"
# Of a document's first point alone: which version it is, how many points that has, and whether all are written.
DIGEST = "digest"
CHUNKS = "chunks"
COMPLETE = "complete"
