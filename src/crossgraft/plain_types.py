"""Types of values that need no array library, so that the command line starts without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

ResizePolicy = Literal["crop", "squash", "pad"]
"""What becomes of an image with another aspect than the input."""
AllowedCode = str | Path | Sequence[str | Path] | None
"""As ``allow_code=`` takes it: a Python file, a folder, ``package.module:factory``, or several of them."""
Uncertain = Literal["zeros", "ones", "leave-out"]
"""What becomes of labels that are not known."""
