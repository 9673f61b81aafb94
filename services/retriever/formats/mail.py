"""Mail (RFC 5322): its headers, its text, and the names of its attachments."""

from email import message_from_bytes, policy
from email.message import EmailMessage

from services.kit.documents import decoded
from services.retriever.extract import MAX_TITLE_CHARS, Extraction
from services.retriever.formats.base import Contents, Section, Unreadable, read_html
from services.retriever.markup import clean_line, clean_text

HEADERS = ("From", "To", "Cc", "Date", "Subject")
MAX_HEADER_CHARS = 500


def read(content: bytes, title: str) -> Contents:
    """One section; raises as `formats.read`."""
    try:
        message = message_from_bytes(content, policy=policy.default)
        headers = {name: clean_line(str(message.get(name, "")), MAX_HEADER_CHARS) for name in HEADERS}
        body = message.get_body(preferencelist=("plain", "html")) if isinstance(message, EmailMessage) else None
        text = _text(body) if isinstance(body, EmailMessage) else ""
        attachments = [clean_line(part.get_filename() or "", MAX_HEADER_CHARS) for part in message.iter_attachments()]
    except Exception as error:  # the parser of headers and encodings raises errors of any type
        raise Unreadable("it is damaged: no mail") from error
    if not any(headers.values()):
        raise Unreadable("it is damaged: no mail")
    own_title = headers["Subject"][:MAX_TITLE_CHARS]
    html = body is not None and body.get_content_subtype() == "html"
    page = read_html(text, title or own_title) if html else Extraction(clean_text(text), title=title or own_title)
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    lines += [f"Attached: {name}" for name in attachments if name]
    return Contents(own_title, (Section(Extraction("\n".join(lines), title=title or own_title)), Section(page)))


def _text(body: EmailMessage) -> str:
    try:
        return str(body.get_content())
    except LookupError:
        # A charset that Python does not know, or "unknown-8bit".
        payload = body.get_payload(decode=True)
        return decoded(payload if isinstance(payload, bytes) else b"", body.get_content_charset(""))
