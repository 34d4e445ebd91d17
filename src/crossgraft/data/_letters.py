"""One way to write each letter: macOS often stores "ü" as u and two dots, most other programs as one character."""

from __future__ import annotations

import unicodedata

from crossgraft.words.visible import storable


def whole_letters(text: str) -> str:
    """``text`` with every letter as one character where there is one (Unicode's form NFC); what is no UTF-8 is escaped."""
    return unicodedata.normalize("NFC", storable(text))
