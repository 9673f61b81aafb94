"""Mail (RFC 5322): its headers, its texts, those of mails attached to it, and the names of its attachments."""

from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage

from services.kit.documents import decoded
from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, Unreadable, read_html
from services.retriever.markup import clean_line, clean_text

HEADERS = ("From", "To", "Cc", "Date", "Subject")
MAX_HEADER_CHARS = 500
_TEXTS = frozenset({"text/plain", "text/html"})
_MAILS = frozenset({"message/rfc822", "message/global"})


def read(content: bytes, title: str) -> Contents:
    """A section for each head and each text; raises as `formats.read`."""
    message = message_from_bytes(content, policy=policy.default)
    if not any(_header(message, name) for name in HEADERS):
        raise Unreadable("it is damaged: no mail")
    own_title = _header(message, "Subject")[:MAX_TITLE_CHARS]
    return Contents(own_title, tuple(_sections(message, title or own_title)))


def _sections(message: EmailMessage, title: str) -> Iterator[Extraction]:
    """The head of a mail, its texts, and the sections of the mails attached to it."""
    head = [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    sections: list[Extraction] = []
    for part in _parts(message):
        kind = part.get_content_type()
        if kind in _TEXTS and not part.is_attachment():
            if (text := _text(part)).strip():
                is_html = kind == "text/html"
                sections.append(read_html(text, title) if is_html else Extraction(clean_text(text), title=title))
            continue
        name = part.get_filename() or ""
        for mail in _within(part) if kind in _MAILS else ():
            name = name or _header(mail, "Subject")
            sections += _sections(mail, title)
        if name := clean_line(name, MAX_HEADER_CHARS):
            head.append(f"Attached: {name}")
    yield Extraction(clean_text("\n".join(head)), title=title)
    yield from sections


def _parts(message: EmailMessage) -> Iterator[EmailMessage]:
    """What a mail is put together of; of alternatives the plain text, or all where that is blank."""
    if not message.is_multipart() or message.get_content_type() in _MAILS:
        yield message
        return
    parts = _within(message)
    if message.get_content_subtype() == "alternative":
        parts = [part for part in parts if part.get_content_type() == "text/plain" and _text(part).strip()] or parts
    for part in parts:
        yield from _parts(part)


def _within(message: EmailMessage) -> list[EmailMessage]:
    return [part for part in message.iter_parts() if isinstance(part, EmailMessage)]


def _header(message: EmailMessage, name: str) -> str:
    return clean_line(str(message.get(name, "")), MAX_HEADER_CHARS)


def _text(part: EmailMessage) -> str:
    # `get_content` drops each byte that the charset, or ASCII where none is named, does not know.
    payload = part.get_payload(decode=True)
    return decoded(payload if isinstance(payload, bytes) else b"", part.get_content_charset(""))
