"""Where a line may break: in a long name after a point or a stroke, never inside a flag, and in a command between its words."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

from crossgraft.words.visible import visible

_WHOLE = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]|[−+]?\d[\d.]* %")
_WORD = re.compile(r"\S+")
_LONG_WORD = re.compile(r"\S{20,}")
_JOINT = re.compile(r"(?<=[a-zA-Z0-9][._/:])(?=\w)")


def prose(text: str) -> Markup:
    """Running text, whose flags and percentages stay whole; a browser breaks ``--no-images`` after each hyphen.

    >>> prose("add --keep 0.8 <b>")
    Markup('add <span class="whole">--keep</span> 0.8 &lt;b&gt;')
    """
    return _spans(visible(text), _WHOLE, "whole")


def breakable(text: str) -> Markup:
    """A title or the text of a cell, whose long names may break between their parts instead of anywhere.

    >>> breakable("mobilenetv2_100.imagenet on a_b")
    Markup('mobilenetv2_<wbr>100.<wbr>imagenet on a_b')
    """
    safe = escape(visible(text))
    return Markup(_LONG_WORD.sub(lambda word: _JOINT.sub("<wbr>", word.group()), safe))


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
