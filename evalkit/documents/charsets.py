"""Decoding of untrusted text, whose charset is declared, marked or unknown."""

import codecs
import re

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Charsets as Python names them.
_CHARSET = re.compile(
    r"utf-(?:8|16|32)\S*|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|big5\w*|gb\w+|euc_\w+|shift_jis\w*|iso2022_\w+|ascii|hz|johab|"
    r"tis-620|ptcp154|kz1048"
)


#: Charsets with one byte a letter, in which any bytes are text: bytes that are UTF-8 were not written in them.
_SINGLE_BYTE_CHARSET = re.compile(r"iso8859-\d+|cp125\d|koi8-\w|mac-\w+")


def decode_text(content: bytes, declared_charset: str = "") -> str:
    """Decode text by byte order mark, declared charset, UTF-8, or Windows-1252.

    UTF-8 comes before a declared charset with one byte a letter.
    Bytes that Windows-1252 does not define become U+FFFD. Line ends become line feeds.
    """
    mark, charset = next((row for row in _BYTE_ORDER_MARKS if content.startswith(row[0])), (b"", declared_charset))
    body = content.removeprefix(mark)
    if not charset and body[1:400:2].count(0) > len(body[1:400:2]) // 2:
        charset = "utf-16-le"
    # Browsers read text that is declared as Latin-1 as Windows-1252, which has more letters.
    charset = "cp1252" if re.fullmatch(r"(?i)(iso-?8859-1|latin-?1|us-ascii)", charset) else charset
    candidates = (charset, "utf-8")
    if _is_charset(charset) and _SINGLE_BYTE_CHARSET.fullmatch(codecs.lookup(charset).name):
        candidates = ("utf-8", charset)
    for candidate in filter(_is_charset, candidates):
        try:
            # Without ``final``, a letter cut off at the end of the file is dropped, not an error.
            text = codecs.getincrementaldecoder(candidate)().decode(body)
            break
        except (LookupError, UnicodeError):
            continue
    else:
        text = body.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_charset(name: str) -> bool:
    """Return True for a charset, False for Python's other codecs.

    Others unpack archives, or take hours.
    """
    try:
        return bool(_CHARSET.fullmatch(codecs.lookup(name).name))
    except (LookupError, ValueError):
        return False
