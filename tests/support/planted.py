"""Words that stand in data and may stand nowhere else, and a search through everything that a command writes."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

PERSONS = ("PLANTED-PATIENT", "PLANTED-REFERRER", "PLANTED-CHUNK", "97.125")
"""A patient, another column, a text inside an image file, an age: they may not even be shown on the terminal."""
PLACES = ("PLANTED-FOLDER", "PLANTED-FILE")
"""A folder above the data and the names of files: on the terminal only, where the person who typed them looks."""
_AGE = float(PERSONS[-1])
_DATA_URI = re.compile(rb"base64,([A-Za-z0-9+/=]+)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def write_planted_study(root: Path, *, size: int = 16) -> Path:
    """A table of 24 images of two classes and twelve patients, with all planted words in it; the path of the table."""
    folder = root / PLACES[0]
    rng = np.random.default_rng(0)
    rows = ["path,label,patient,age,referrer"]
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", PERSONS[2])
    note.add_itxt("Description", PERSONS[2], zip=True)
    for row in range(24):
        label = ("benign", "malignant")[row % 2]
        path = Path(label) / f"{PLACES[1]}-{row}.png"
        (folder / label).mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 120, (size, size, 3)) + 80 * (row % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / path, pnginfo=note)
        patient = f"{PERSONS[0]}-{row % 2 + 2 * (row // 4)}"
        rows.append(f"{path},{label},{patient},{_AGE if row == 5 else 40 + row},{PERSONS[1]}-{row % 3}")
    table = folder / "study.csv"
    table.write_text("\n".join(rows))
    return table


@dataclass
class Search:
    """What was searched, and where a word was found."""

    words: tuple[str, ...]
    leaks: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def folder(self, root: Path) -> Search:
        """Names and content of every file below a folder."""
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            self.text(f"the name of {name}", name)
            if path.is_file():
                self.content(name, path.read_bytes())
        return self

    def text(self, where: str, text: str) -> Search:
        """One text."""
        self.leaks += [f"{word} in {where}" for word in self.words if word in text]
        return self

    def content(self, where: str, content: bytes) -> None:
        """The bytes of a file, and whatever is packed into them."""
        self.leaks += [f"{word} in {where}" for word in self.words if any(form in content for form in _forms(word))]
        for kind, name, inner in _unpacked(content):
            self.kinds.add(kind)
            self.content(f"{where} > {kind} {name}", inner)


def _forms(word: str) -> list[bytes]:
    """How a word, or the number that it is, may stand in a file."""
    texts = [word.encode(code) for code in ("utf-8", "utf-16-le", "utf-32-le")]
    escaped = json.dumps(word)[1:-1].encode()
    return [*texts, escaped] + (
        [np.float64(_AGE).tobytes(), np.float64(_AGE).astype(">f8").tobytes()] if word == PERSONS[-1] else []
    )


def _unpacked(content: bytes) -> Iterator[tuple[str, str, bytes]]:
    """Kind, name and bytes of what is inside: members of archives, texts of images, values of JSON, embedded pictures."""
    if content.startswith(b"PK") and zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from (("zip", entry.filename, archive.read(entry)) for entry in archive.infolist())
            yield from (("zip", "name", entry.filename.encode()) for entry in archive.infolist())
    elif content.startswith(b"\x1f\x8b"):
        yield "gzip", "", gzip.decompress(content)
    elif content.startswith(b"\x89PNG"):
        yield from _chunks_of_png(content)
    elif content[8:9] == b"{" and len(content) > 8 + (length := int.from_bytes(content[:8], "little")):
        yield "safetensors", "header", json.dumps(json.loads(content[8 : 8 + length]), ensure_ascii=False).encode()
    elif content[:1] in (b"{", b"["):
        yield from _values_of_json(content)
    yield from (("data URI", str(place), base64.b64decode(found[1])) for place, found in enumerate(_DATA_URI.finditer(content)))


def _chunks_of_png(content: bytes) -> Iterator[tuple[str, str, bytes]]:
    place = 8
    while place + 8 <= len(content):
        length, name = int.from_bytes(content[place : place + 4], "big"), content[place + 4 : place + 8].decode()
        chunk = content[place + 8 : place + 8 + length]
        yield "PNG", name, chunk
        if name in ("zTXt", "iTXt"):
            packed = chunk[chunk.index(b"\x78") :] if b"\x78" in chunk else b""
            with suppress(zlib.error):  # a text that is not packed
                yield "PNG", f"{name} unpacked", zlib.decompress(packed)
        place += 12 + length


def _values_of_json(content: bytes) -> Iterator[tuple[str, str, bytes]]:
    """As a reader sees them, whatever was escaped; long texts of base64 as the bytes that they are."""
    try:
        document = json.loads(content)
    except ValueError:  # lines of JSON
        return
    shown = json.dumps(document, ensure_ascii=False)
    yield "JSON", "", b" " + shown.encode()
    for place, found in enumerate(_BASE64.finditer(shown)):
        text = found[0][: len(found[0]) // 4 * 4]
        yield "base64", str(place), base64.b64decode(text)
