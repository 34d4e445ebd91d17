"""Put the page together: records in, one HTML file out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crossgraft.errors import UsageError
from crossgraft.options import PageOptions, checked
from crossgraft.paths import real_path
from crossgraft.report.blocks import Heading, Section
from crossgraft.report.source import Source, read_run
from crossgraft.report.tables import Column, Table, words
from crossgraft.report.typesetting import breakable, code_line, prose
from crossgraft.runs import write_atomically
from crossgraft.runs.inputs import refuse_file_of_a_run
from crossgraft.runs.written_files import is_page
from crossgraft.storage.replacing import refuse_to_replace
from crossgraft.version import __version__
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    from crossgraft.report.kinds import Kind

_REPLICATES = "jackknife_values"


@dataclass(frozen=True)
class RunPart:
    """One run on the page.

    Args:
        command: The command that made it.
        heading: Heading before its sections.
        sections: Its sections in order.
        prefix: Keeps its anchors apart from those of other runs.
        has_images: Whether it shows images.
        has_replicates: Whether its record holds jackknife replicates, which the page leaves out.
        record_json: Its record, safe inside a script element.
    """

    command: str
    heading: Heading
    sections: Sequence[Section]
    prefix: str
    has_images: bool
    has_replicates: bool
    record_json: Markup

    @property
    def parts(self) -> list[tuple[str, list[Section]]]:
        """Sections under the part of the page they belong to, in order."""
        names = dict.fromkeys(section.part for section in self.sections)
        return [(name, [section for section in self.sections if section.part == name]) for name in names]


def write_report(run_directory: str | Path | Sequence[str | Path], *, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page for one run, or for several side by side.

    Reads ``run.json``, ``report.json`` and, when there, ``thumbnails.json`` of each run; computes nothing.
    The same records give the same bytes, but for a next command that depends on which models are on this machine.

    Args:
        run_directory: The folder of one run, or a sequence of folders.
        out: The file to write; ``report.html`` inside the folder of a single run by default.

    Returns:
        The file that was written.

    Raises:
        UsageError: No run, several runs without ``out``, a folder that is no run, or another file where the page would be.
        OtherRunError: The page of another run is there.
        DataError: A record is damaged; the message names the file.
        StorageError: The page could not be written; an older page stays as it was.
    """
    asked = checked(PageOptions, {"run_directory": run_directory, "out": out})
    run_directory, out = asked.run_directory, asked.out
    single = isinstance(run_directory, str | Path)
    directories = [Path(run_directory)] if single else [Path(directory) for directory in run_directory]
    if not directories:
        raise UsageError("No run directory was given. Name at least one folder that a crossgraft command wrote.")
    if out is None and len(directories) > 1:
        raise UsageError("A page of several runs needs a file to go to: give out=… (--out FILE).")
    target = directories[0] / "report.html" if out is None else Path(out)
    refuse_to_replace(target, is_page, what="a page")
    refuse_file_of_a_run(target, but=directories[0] if len(directories) == 1 else None)
    return write_atomically(target, render_page(directories, at=target.parent))


def render_page(directories: Sequence[Path], *, at: Path | None = None) -> str:
    """The HTML of one page for ``directories``; see ``write_report``.

    Args:
        directories: Folders of runs.
        at: Folder that the page is for; links to files of a run are left out elsewhere. None: that of the only run.
    """
    # Figures bring matplotlib, a second of start-up that a process without a page need not spend.
    from crossgraft.report.sections import KINDS

    record_types = {name: kind.record_type for name, kind in KINDS}
    prefixes = [""] if len(directories) == 1 else [f"run-{index}-" for index in range(1, len(directories) + 1)]
    sources = [
        read_run(directory, record_types, prefix=prefix, is_at_home=_is_home(directory, directories, at))
        for directory, prefix in zip(directories, prefixes, strict=True)
    ]
    parts = [_run_part(source, KINDS.get(source.record.kind)) for source in sources]
    script = _static("report.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            parts=parts,
            comparison=_side_by_side(parts) if len(parts) > 1 else None,
            title=" · ".join(part.heading.title for part in parts),
            version=__version__,
            style=Markup(_static("report.css")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _is_home(directory: Path, directories: Sequence[Path], at: Path | None) -> bool:
    return len(directories) == 1 and (at is None or real_path(at) == real_path(directory))


def _run_part(source: Source[Any], kind: Kind) -> RunPart:
    sections = [section for builder in kind.builders if (section := builder(source)) is not None]
    document = source.record.model_dump_json()
    return RunPart(
        command="" if source.run is None else source.run.command,
        heading=kind.heading(source),
        sections=sections,
        prefix=source.prefix,
        has_images=bool(source.thumbnails),
        has_replicates=f'"{_REPLICATES}":' in document,
        record_json=_script_json(document, {_REPLICATES, *kind.only_in_the_file}),
    )


def _side_by_side(parts: Sequence[RunPart]) -> Table:
    return Table(
        caption="The runs on this page",
        columns=[Column("Run"), Column("Data and models"), Column("Verdict")],
        rows=[
            [
                words(f"{index}. {part.heading.title}", href=f"#{part.prefix}run"),
                words(part.heading.summary),
                words(part.heading.advice),
            ]
            for index, part in enumerate(parts, start=1)
        ],
        file_name="runs",
    )


def _script_json(document: str, left_out: Collection[str]) -> Markup:
    """A record as JSON that cannot end its script element: no ``<``, ``>`` or ``&`` stays in it."""
    shown = _without(json.loads(document), left_out)
    text = json.dumps(shown, ensure_ascii=True, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _without(value: object, left_out: Collection[str]) -> object:
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {key: _without(item, left_out) for key, item in items if key not in left_out}
    if isinstance(value, list):
        return [_without(item, left_out) for item in cast("list[object]", value)]
    return value


@cache
def _environment() -> Environment:
    """Made once: it keeps what it compiled of the templates, for all pages of a command that writes several."""
    environment = Environment(
        loader=PackageLoader("crossgraft.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(prose=prose, breakable=breakable, code_line=code_line)
    return environment


def _shown(value: object) -> object:
    """Names cannot turn the text around them; what is markup already was made of visible text."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _static(name: str) -> str:
    return resources.files("crossgraft.report").joinpath("static", name).read_text(encoding="utf-8")
