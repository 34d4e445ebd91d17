"""What an object shows as the last line of a cell of a notebook: a few facts in a table, escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from crossgraft.words.visible import visible


def facts_table(title: str, facts: Mapping[str, object]) -> str:
    """HTML without style or script, so that it fits light and dark notebooks; facts that are None are left out.

    >>> facts_table("a <b>", {"images": 3, "groups": None})
    '<table><caption>a &lt;b&gt;</caption><tr><th>images</th><td>3</td></tr></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(visible(name))}</th><td>{escape(visible(str(fact)))}</td></tr>"
        for name, fact in facts.items()
        if fact is not None
    )
    return f"<table><caption>{escape(visible(title))}</caption>{rows}</table>"
