"""A page as somebody reads it: the words before anything is unfolded, and its sentences."""

import re
from html.parser import HTMLParser

_ALONE = {"p", "li", "dd", "dt", "figcaption", "caption", "summary", "h1", "h2", "h3", "h4", "td", "th", "pre", "div", "title"}
_UNREAD = {"script", "style", "select", "title", "nav"}
_DATA = {"td", "th", "pre", "dt", "svg"}
_VOID = {"img", "br", "meta", "link", "input", "wbr", "hr"}
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")
LEAST_WORDS = 5
"""Of a sentence; fewer are a name or a unit, and what has no full stop is a title."""


class ReadPage(HTMLParser):
    """What stands on a page.

    Attributes:
        first_words: Those outside of folds; drawings for phones are read once, as the wide ones.
        sentences: Of running text; cells, code and drawings are data.
    """

    def __init__(self, html):
        super().__init__()
        self.first_words, self.sentences = [], []
        self._open, self._text = [], []
        self.feed(html)
        self._end_text()

    def handle_starttag(self, tag, attrs):
        classes = (dict(attrs).get("class") or "").split()
        if tag in _VOID:
            return
        if tag in _ALONE:
            self._end_text()
        self._open.append("unread" if {"narrow", "unseen"} & set(classes) else tag)

    def handle_endtag(self, tag):
        if tag in _VOID or not self._open:
            return
        if tag in _ALONE:
            self._end_text()
        self._open.pop()

    def handle_data(self, data):
        if {"unread", *_UNREAD} & set(self._open):
            return
        folds = [place for place, tag in enumerate(self._open) if tag == "details"]
        if not folds or (self._open[folds[-1] + 1 : folds[-1] + 2] == ["summary"] and len(folds) == 1):
            self.first_words += data.split()
        if not _DATA & set(self._open):
            self._text.append(data)

    def _end_text(self):
        text = " ".join("".join(self._text).split())
        self._text = []
        self.sentences += [each for each in _END.split(text) if len(each.split()) >= LEAST_WORDS and each[-1] in ".!?"]

    @property
    def twice(self):
        """Sentences that stand there more than once, whatever name stands before one and a colon."""
        again = {each for each in self.sentences if self.sentences.count(each) > 1}
        return sorted(again | {bare for each in self.sentences if (bare := each.partition(": ")[2]) in self.sentences})
