"""Mails: headers and text; their attachments are documents of their own."""

import html

from evalkit.documents.attachments import MAIL_SUFFIXES, has_mail_signature, parse_mail
from evalkit.documents.html_layout import convert_html_to_pdf
from evalkit.documents.input_format import ConvertedFile, build_empty_error, define_converted_format


def convert_mail(content: bytes, name: str) -> ConvertedFile:
    """Convert a mail to a PDF as if printed, listing its attachments' names.

    DocumentError: READER-EMPTY, and as ``parse_mail`` and ``convert_html_to_pdf``.
    """
    mail = parse_mail(content, name)
    bodies = [
        text if kind == "html" else f"<pre>{html.escape(text)}</pre>" for kind, text in mail.bodies if text.strip()
    ]
    if not (bodies or mail.attachments or "Subject" in mail.headers):
        raise build_empty_error(name)
    rows = (
        *mail.headers.items(),
        ("Attachments", ", ".join(mail.attachments)),
        ("Small pictures, not read", ", ".join(mail.logos)),
    )
    heading = "".join(f"<div><b>{key}:</b> {html.escape(text)}</div>" for key, text in rows if text)
    markup = f"<html><body>{heading}<hr>{'<hr>'.join(bodies)}</body></html>"
    # The styles of a part would hide the heading and the other parts, too.
    return ConvertedFile(convert_html_to_pdf(markup, name, obeys_styles=False), mail.is_damaged)


FORMAT = define_converted_format("EML", MAIL_SUFFIXES, has_mail_signature, convert_mail, "mail 2")
