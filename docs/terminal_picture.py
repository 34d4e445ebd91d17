"""Draw what a finished run prints at its end as a terminal: an SVG without fonts, scripts or places of the network.

python docs/terminal_picture.py docs/images/demo docs/images/demo.svg
"""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path

from rich.console import Console
from rich.text import Text

from crossgraft.report.kinds import KINDS
from crossgraft.report.terminal import record_as_text

COLUMNS = 100
PLAIN = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>What crossgraft demo prints</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 16px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture_of(run: Path, command: str) -> str:
    """The SVG of a run directory, or of its ``report.json`` alone; the same file gives the same bytes.

    Args:
        run: The folder.
        command: What was typed.
    """
    document = (run / "report.json").read_text(encoding="utf-8")
    kind = KINDS.get(json.loads(document)["kind"])
    said = record_as_text(kind.record_type.model_validate_json(document), out=Path("runs/demo"), command_line=command)
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold green"))
    for line in (said or "").splitlines():
        is_title = line.startswith("Demo:") or (line[:1].isdigit() and line[1:3] == ". ")
        is_command = line.lstrip().startswith("crossgraft ")
        style = "bold cyan" if is_title else "green" if is_command else "bold yellow" if line.startswith("Caveat:") else ""
        shown = line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…"
        console.print(Text(shown, style=style), no_wrap=True)
    return console.export_svg(title=command, code_format=PLAIN, unique_id="demo")


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="run directory")
    parser.add_argument("picture", type=Path, help="SVG to write")
    parser.add_argument("--command", default="crossgraft demo", help="what was typed")
    said = parser.parse_args()
    said.picture.write_text(picture_of(said.run, said.command), encoding="utf-8")


if __name__ == "__main__":
    main()
