"""Words that the package and its documentation do not use, because readers stumble over them."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "crossgraft"

UNITS = (
    "image label class line patient model score row file core pixel sample group fold target channel column step epoch "
    "batch variant metric layer benchmark panel slice"
).replace(" ", "|")
COUNTED = "class|image|label|row|entry|column|value|score|file|number|name|group|training|forward pass|line"

FORBIDDEN = {
    "cannot is one word": r"\b[Cc]an\s+not\b(?! only)",
    "say per image": rf"\b[Oo]ne(?: (?:{COUNTED}))?\s+an? (?:{UNITS})\b|\b[Ss]everal(?: labels)?\s+an image\b",
    "count per unit": r"\b(?:samples|bits|ms|images|values|operations|numbers) an? (?:image|class|pixel|step|epoch|batch)\b",
    "name an argument by a noun": r"^ +\w+: Of |^\s*[rf]?\"\"\"Of ",
    "an argument is a thing": r"^ {8,}\w+: (?:Told|Which|Why|Decides|How (?:many|to call)|What to call|As given)\b",
    "a docstring states": r"^\s*[rf]?\"\"\"[^\"]*\?(?:\"\"\"|$)",
    "an argument is no question": r"^ {8,}\w+: (?:Is|Are|Does|Do|Did|May|Can|Has|Have|Was|Were)\b.*\?$",
    "say weight interpolation": r"\bmix(?:ed|ing) weights\b",
    "say held-out": r"\bthat (?:it never saw|nothing was decided with)\b",
    "say report": r"\b[Tt]he page (?:shows|holds|contains|says)\b",
}
"""What to say → how it must not be said, line by line."""

IN_MODULES = {name: rule for name, rule in FORBIDDEN.items() if name != "say report"}
"""Inside the package a page is what ``report`` builds."""

EXCEPTIONS = {
    "src/crossgraft/rank/published/tables.py": ["count per unit"]  # the name of a protocol, which is kept in users' files
}
"""File → rules that it may break, and why."""

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
MODULES = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".py", ".html", ".md", ".js"))


def broken(path, rules):
    """Rule, place and line of everything in ``path`` that is said otherwise."""
    label = str(path.relative_to(REPOSITORY))
    rules = {name: rule for name, rule in rules.items() if name not in EXCEPTIONS.get(label, ())}
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        f"{label}:{number}: {name}: {line.strip()}"
        for name, rule in rules.items()
        for number, line in enumerate(lines, start=1)
        if re.search(rule, line)
    ]


def test_pages_use_plain_words():
    assert [line for page in PAGES for line in broken(page, FORBIDDEN)] == []


def test_modules_use_plain_words():
    assert [line for path in MODULES for line in broken(path, IN_MODULES)] == []


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("cannot is one word", "It can not be read."),
        ("say per image", "with several labels an image"),
        ("say per image", "One row a model, best first."),
        ("count per unit", "16 bits a pixel"),
        ("name an argument by a noun", "        seed: Of the draw."),
        ("name an argument by a noun", '    """Of the rows that are used."""'),
        ("an argument is a thing", "        reporter: Told about progress."),
        ("a docstring states", '    """May images be mirrored?"""'),
        ("an argument is no question", "        available: Can it be loaded now?"),
        ("say weight interpolation", "the curve of mixed weights"),
        ("say held-out", "on images that nothing was decided with"),
        ("say report", "The page shows no names."),
    ],
)
def test_each_rule_finds_what_it_is_for(rule, text):
    assert re.search(FORBIDDEN[rule], text)


def test_the_glossary_is_in_alphabetical_order():
    rows = re.findall(r"(?m)^\| ([^|]+) \| [^|]+ \|$", (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8"))
    words = [row.lower() for row in rows if row != "word"]
    assert len(words) > 40
    assert words == sorted(words)
