"""Count the lines of each package: code, words (docstrings and comments) and blank ones; and what was added since a revision.

    python recipes/lines_of_code.py [REVISION]

Files of more than 500 lines are listed. Run it in the root of the repository; files that git does not know are left out.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path, PurePosixPath

KINDS = ("code", "words", "blank")


def count(source: str) -> Counter[str]:
    """Lines of each kind; a string that stands alone is words, one that is used is code."""
    words, strings = set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    found: Counter[str] = Counter()
    for number, line in enumerate(source.splitlines(), start=1):
        if number in words or (line.lstrip().startswith("#") and number not in strings):
            found["words"] += 1
        else:
            found["code" if line.strip() or number in strings else "blank"] += 1
    return found


def package_of(path: str) -> str:
    """``src/crossgraft/data/medical/dicom.py`` → ``crossgraft.data``; of tests, recipes and so on the first folder."""
    first, *rest = PurePosixPath(path).parts
    return first if first != "src" else ".".join(rest[:2] if len(rest) > 2 else rest[:1])


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE).stdout


def files_now() -> dict[str, str]:
    names = git("ls-files", "-z", "--", "*.py").decode().split("\0")
    return {name: Path(name).read_text(encoding="utf-8") for name in names if name and Path(name).is_file()}


def files_at(revision: str) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", revision))) as archive:
        return {file.name: archive.extractfile(file).read().decode() for file in archive if file.name.endswith(".py")}


def by_package(files: dict[str, str]) -> dict[str, Counter[str]]:
    found = {"all": Counter[str]()}
    for name, source in files.items():
        found.setdefault(package_of(name), Counter()).update(lines := count(source))
        found["all"].update(lines)
    return found


def main(arguments: list[str]) -> None:
    now = files_now()
    new, old = by_package(now), by_package(files_at(arguments[0])) if arguments else {}
    print(f"{'package':>24}" + "".join(f"{kind:>20}" for kind in KINDS))
    for package in sorted({*new, *old}, key=lambda name: (name == "all", name)):
        n, o = new.get(package, Counter[str]()), old.get(package, Counter[str]())
        cells = [f"{n[kind]:,}" + (f" ({n[kind] - o[kind]:+,})" if arguments else "") for kind in KINDS]
        print(f"{package:>24}" + "".join(f"{cell:>20}" for cell in cells))
    for name, source in sorted(now.items()):
        if (lines := len(source.splitlines())) > 500:
            print(f"{lines:,} lines: {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
