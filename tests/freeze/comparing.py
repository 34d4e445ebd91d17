"""Frozen values against those of now, and the machine that they belong to."""

from __future__ import annotations

import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

How = Literal["exact", "close", "shape"]

RELATIVE, ABSOLUTE = 1e-2, 1e-3
"""How far numbers may be apart on another machine."""

_HASH = re.compile(r"\b[0-9a-f]{16,64}\b")
_HASH_IN_A_PATH = re.compile(rf"(\b[0-9a-f]{{2}}/)?{_HASH.pattern}")  # the cache puts its first letters in front
_HASH_OF_ANY_MACHINE = "structure"
_PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pillow")
_MISSING = "(nothing)"
_NO_TEXT = (int, float, bool, type(None))
_PLAIN = (str, *_NO_TEXT)


class Difference(NamedTuple):
    """One value that is not what it was; ``place`` is the file and, inside it, the path."""

    command: str
    file: str
    place: str
    old: object
    new: object

    def __str__(self) -> str:
        """One line."""
        where = ": ".join(part for part in (self.command, self.file, self.place or "as a whole") if part)
        return f"{where}: {_short(self.old)} → {_short(self.new)}"


def fingerprint() -> dict[str, str]:
    """What decides the last digits: the processor, for which products are cut into blocks, and the packages that compute."""
    import torch

    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def processor(described_in: Path = Path("/proc/cpuinfo")) -> str:
    """Vendor, family and model; two with the same instructions may sum in another order.

    Args:
        described_in: What Linux says of processors; elsewhere, and where it has no such lines, ``platform`` is asked.
    """
    text = described_in.read_text(encoding="utf-8") if described_in.is_file() else ""
    found = [re.search(rf"^{name}\s*:\s*(\S+)", text, re.MULTILINE) for name in ("vendor_id", "cpu family", "model")]
    known = [each.group(1) for each in found if each is not None]
    return " ".join(known) if known else platform.processor()


def differences(command: str, old: Mapping, new: Mapping, *, how: How) -> list[Difference]:
    """What one command does differently.

    Args:
        command: Its name.
        old: Frozen values, as ``Runner.values`` gives them.
        new: Those of now.
        how: ``exact`` on the machine of the frozen values. Elsewhere hashes are skipped, and numbers need to be ``close``; or
            have the same ``shape`` (keys, tables, texts or not) where rounding is no small change.
    """
    about_all = _changes(_without_files(old), _without_files(new), "", "exact")
    found = [Difference(command, "", *change) for change in about_all]
    before, now = (_by_name(values["files"], how) for values in (old, new))
    for file in sorted({*before, *now}):
        changes = _changes(before.get(file, _MISSING), now.get(file, _MISSING), "", how)
        found += [Difference(command, file, *change) for change in changes]
    return sorted(found, key=lambda difference: difference.place != "")  # whole files first


def count_hashes(values: object, key: str = "") -> int:
    """How many hashes are skipped on another machine."""
    if isinstance(values, Mapping):
        return sum(count_hashes(value, str(name)) for name, value in values.items())
    if isinstance(values, list):
        return sum(count_hashes(value, key) for value in values)
    return int(key != _HASH_OF_ANY_MACHINE and isinstance(values, str) and bool(_HASH.fullmatch(values)))


def _without_files(values: Mapping) -> dict:
    return {name: value for name, value in values.items() if name != "files"}


def _by_name(files: Mapping[str, object], how: How) -> dict[str, object]:
    """Files that are named by a hash are one kind of file on another machine, which is there or not."""
    if how == "exact":
        return dict(files)
    named: dict[str, object] = {}
    for name, value in files.items():
        named.setdefault(_HASH_IN_A_PATH.sub("<hash>", name), "<some>" if _HASH.search(name) else value)
    return named


def _changes(old: object, new: object, place: str, how: How) -> Iterator[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key, _MISSING), new.get(key, _MISSING), f"{place}.{key}".lstrip("."), how)
    elif isinstance(old, list) and isinstance(new, list):
        may_vary = how == "shape" and all(isinstance(value, _PLAIN) for value in (*old, *new))
        if len(old) != len(new) and not may_vary:
            yield f"{place}.length", len(old), len(new)
        for number, pair in enumerate(zip(old, new, strict=False)):
            yield from _changes(*pair, f"{place}[{number}]", how)
    elif not _is_same(old, new, how, hash_counts=place.rpartition(".")[2] == _HASH_OF_ANY_MACHINE):
        yield place, old, new


def _is_same(old: object, new: object, how: How, *, hash_counts: bool) -> bool:
    """The same value; numbers to the last bit, and 1 is not 1.0."""
    if _MISSING in (old, new) or not (isinstance(old, _PLAIN) and isinstance(new, _PLAIN)):
        return False
    if json.dumps(old) == json.dumps(new):
        return True
    if how == "exact":
        return False
    one, other = _fraction(old), _fraction(new)
    if how == "close" and one is not None and other is not None:
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(old, str) and isinstance(new, str) and (how == "shape" or _HASH.search(old)):
        return not hash_counts and (how == "shape" or _HASH.sub("", old) == _HASH.sub("", new))
    return how == "shape" and isinstance(old, _NO_TEXT) and isinstance(new, _NO_TEXT)


def _fraction(value: object) -> float | None:
    """A number that is no count; None for anything else. Tables hold numbers as text."""
    if isinstance(value, str):
        try:
            return None if re.fullmatch(r"[+-]?\d+", value) else float(value)
        except ValueError:
            return None
    return value if isinstance(value, float) else None


def _short(value: object) -> str:
    text = value if value is _MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 100 else f"{text[:97]}..."
