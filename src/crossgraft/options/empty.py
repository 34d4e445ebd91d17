"""Text that says nothing is refused: mostly it is a variable of a shell that is not set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from crossgraft.errors import UsageError


def refuse_empty(shown: str, value: object, *, blank: bool = False) -> None:
    """Raise for empty text, or a list that holds some.

    Args:
        shown: The flag or argument, for the message.
        value: What was given to it.
        blank: Whether blanks alone are a value, as of a separator.

    Raises:
        UsageError: It is empty.
    """
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
    for text in several:
        if isinstance(text, str) and not (text if blank else text.strip()):
            raise UsageError(
                f"{shown} is empty ({text!r}). Give it a value, or leave it out; if a variable of the shell stands there, it is "
                "not set."
            )
