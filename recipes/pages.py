"""Write pages of docs/results from their committed tables.

    python recipes/pages.py adapters repsim     # these; without a name all
    python recipes/pages.py --check             # write nothing; says which committed pages and figures are not what is drawn

A page is two files in recipes/drawing: NAME.md, its words with fields, and NAME.py, whose ``fields(results, figures)`` reads
tables below docs/results, writes figures into a folder, and returns what the fields are. Nothing is trained or measured here:
each page says which command makes its table.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
DRAWING = ROOT / "recipes" / "drawing"


def names() -> list[str]:
    """All pages that can be drawn."""
    return sorted(file.stem for file in DRAWING.glob("*.md"))


def draw(name: str, figures: Path, results: Path = RESULTS) -> str:
    """The text of a page; its figures go to the folder ``figures``."""
    module = importlib.import_module(f"drawing.{name.replace('-', '_')}")
    words = (DRAWING / f"{name}.md").read_text(encoding="utf-8")
    return words.format(**module.fields(results, figures))


def files_of(name: str, figures: Path) -> dict[Path, bytes]:
    """Where page and figures belong → what they are to hold."""
    page = draw(name, figures).encode()
    return {RESULTS / f"{name}.md": page} | {RESULTS / name / file.name: file.read_bytes() for file in figures.iterdir()}


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare."""
    chosen = [each for each in arguments if each != "--check"] or names()
    if unknown := set(chosen) - set(names()):
        print(f"No such page: {', '.join(sorted(unknown))}. There are {', '.join(names())}.", file=sys.stderr)
        return 2
    differ = 0
    for name in chosen:
        figures = Path(tempfile.mkdtemp())
        try:
            for file, content in files_of(name, figures).items():
                if file.is_file() and file.read_bytes() == content:
                    continue
                differ += 1
                print(f"{'differs' if '--check' in arguments else 'written'}: {file.relative_to(ROOT).as_posix()}")
                if "--check" not in arguments:
                    file.parent.mkdir(exist_ok=True)
                    file.write_bytes(content)
        finally:
            shutil.rmtree(figures)
    return int(differ > 0 and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
