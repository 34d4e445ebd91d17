"""Names of files and folders that every operating system accepts."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from crossgraft.words.visible import storable

# Windows refuses these in names, and has devices of the reserved names in every folder, with any extension.
_REFUSED = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_LONGEST_BYTES = 60


def portable_name(text: str) -> str:
    """``text`` as the name of one file or folder on Linux, macOS and Windows; as it is if it is one already.

    >>> portable_name("hf:owner/chest x-ray?"), portable_name("aux"), portable_name("brustkrebs")
    ('hf-owner-chest x-ray', '_aux', 'brustkrebs')
    """
    # macOS may give the letters of a name in parts (a + umlaut), which other systems take for another name.
    name = _REFUSED.sub("-", unicodedata.normalize("NFC", storable(text))).strip(" .-")
    if len(name.encode()) > _LONGEST_BYTES:
        # Windows limits whole paths to 260 characters; the digest keeps names apart that begin alike.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name.encode()[: _LONGEST_BYTES - 9].decode(errors='ignore').rstrip(' .-')}-{digest}"
    return f"_{name}" if _RESERVED.fullmatch(name) else name
