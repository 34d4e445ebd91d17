"""Where a line may break: never inside a flag or before a percent sign, and in a command only between its words."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from crossgraft.words.visible import visible

_WHOLE = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]|[−+]?\d[\d.]* %")
_WORD = re.compile(r"\S+")


def prose(text: str) -> Markup:
    """Running text, whose flags and percentages stay whole; a browser breaks ``--no-images`` after each hyphen.

    >>> prose("add --keep 0.8 <b>")
    Markup('add <span class="whole">--keep</span> 0.8 &lt;b&gt;')
    """
    return _spans(visible(text), _WHOLE, "whole")


def code_line(text: str) -> Markup:
    r"""One line of a listing, with its line feed, each word of it an element.

    >>> code_line("tune DATA")
    Markup('<span class="line"><span class="word">tune</span> <span class="word">DATA</span>\n</span>')
    """
    return Markup('<span class="line">{}\n</span>').format(_spans(visible(text), _WORD, "word"))


def _spans(text: str, pattern: re.Pattern[str], name: str) -> Markup:
    """``text`` with an element of class ``name`` around all that the pattern finds, everything escaped."""
    parts: list[Markup] = []
    end = 0
    for found in pattern.finditer(text):
        parts += [escape(text[end : found.start()]), Markup('<span class="{}">{}</span>').format(name, found.group())]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])
