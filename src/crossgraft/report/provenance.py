"""How the numbers were made: enough to make them again. Folded, because most readers need it once."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from crossgraft.records.base import Record
from crossgraft.records.runs import RunRecord
from crossgraft.report.blocks import Block, Code, Facts, Folded, Paragraph, Section
from crossgraft.report.paths import configuration_without_absolute_paths, without_absolute_paths
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, words
from crossgraft.words.formatting import MISSING, NumberFormat, duration, short_fingerprint

_FOLDERS_LEFT_OUT = (
    "…/ stands for the folders of an absolute path, which are not kept; put yours there to run it again."
)


def provenance_section(source: Source[Record]) -> Section | None:
    """Command, configuration, versions, machine, fingerprints and seconds; None for what is no run."""
    run = source.run
    if run is None:
        return None
    configuration = yaml.safe_dump(
        configuration_without_absolute_paths(run.config), sort_keys=True, allow_unicode=True, width=100
    )
    line = without_absolute_paths(run.command_line)
    left_out = [Paragraph(_FOLDERS_LEFT_OUT)] if "…/" in line else []
    title = "Call in Python" if line.startswith("crossgraft.") else "Command"
    blocks: list[Block] = [
        Folded(title, [Code(line), *left_out, _run_facts(run)]),
        Folded("Configuration", [Code(configuration)]),
        Folded("Versions and machine", [_facts(run.versions), _facts(run.machine)]),
        Folded("Fingerprints", [_fingerprints(run)]),
    ]
    if run.stages:
        total = sum(stage.seconds for stage in run.stages)
        blocks.append(Folded(f"Time spent: {duration(total)}", [_stages(run)]))
    return Section(name="how", title="How it was made", part="how it was made", blocks=blocks)


def _run_facts(run: RunRecord) -> Facts:
    return Facts(
        [
            ("crossgraft", run.crossgraft_version),
            ("Seed", str(run.seed)),
            ("Started", run.started_at),
            ("Finished", run.finished_at or MISSING),
        ]
    )


def _facts(values: Mapping[str, str]) -> Facts:
    return Facts([(name, without_absolute_paths(value)) for name, value in values.items()])


def _fingerprints(run: RunRecord) -> Facts:
    data = short_fingerprint(run.data_fingerprint) if run.data_fingerprint else MISSING
    weights = [(name, short_fingerprint(value)) for name, value in run.weights_fingerprints.items()]
    return Facts([("Configuration", short_fingerprint(run.config_hash)), ("Data", data), *weights])


def _stages(run: RunRecord) -> Table:
    seconds = NumberFormat.for_column([max(stage.seconds for stage in run.stages)])
    return table_of(
        run.stages,
        [
            (Column("Stage"), lambda stage: words(stage.name)),
            (Column("Seconds", numeric=True), lambda stage: number(stage.seconds, seconds)),
        ],
        caption="Seconds of each stage",
        file_name="stages",
    )
