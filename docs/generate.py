"""Write the catalogues of docs/catalogues/ from the registries and the command line. Command: python docs/generate.py.

A test fails when a page is stale.
"""

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "catalogues"
NOTE = "<!-- Written by docs/generate.py; do not edit. -->\n"


def scores_page() -> str:
    """One row a score of this package, with a link to its card."""
    from crossgraft.scores import DEFAULT_SCORES, SCORES

    rows = [
        f"| [{score.title}](../methods/{name}.md) | `{name}` | {score.needs} | "
        f"{'yes' if name in DEFAULT_SCORES else 'with `--scores all` or by name'} | {score.cost} | {score.reference} |"
        for name, score in SCORES
        if SCORES.origin(name) == "crossgraft"
    ]
    head = "| score | name | needs | computed by default | cost | source |\n|---|---|---|---|---|---|"
    text = (
        "Larger is always better. Inputs in brackets are optional. `crossgraft list scores` also shows scores of other "
        "installed packages."
    )
    return "\n".join([NOTE, "# Scores", "", text, "", head, *rows, ""])


def sources_page() -> str:
    """One row a kind of data."""
    from crossgraft.data import SOURCES

    rows = [f"| `{name}` | {source.description} |" for name, source in SOURCES if SOURCES.origin(name) == "crossgraft"]
    return "\n".join([NOTE, "# Kinds of data", "", "| kind | reads |", "|---|---|", *rows, ""])


def slots_page() -> str:
    """One table a slot of fine-tuning."""
    from crossgraft.tune.slots import options_in_words, slots

    flags = {"methods": "--method", "regularizers": "--regularizer", "batch_transforms": "--batch-transform"}
    flags |= {"objectives": "--objective", "feature_transforms": "--feature-transform"}
    flags |= {"augmentations": "--augmentation", "losses": "--loss", "schedules": "--schedule", "presets": "--preset"}
    parts = [NOTE, "# What `crossgraft tune` can be told", ""]
    parts += ["Write a name, `name:value` for its first option, or `name:option=value,option=value`. The same with", ""]
    parts[-1:] = ["`crossgraft list methods` (and so on), which also shows what other installed packages bring.", ""]
    for kind, registry in slots().items():
        folder = kind.replace("_", "-")
        rows = [
            f"| `{name}` | {_linked(plugin.title, f'{folder}/{name}.md')} | {options_in_words(plugin) or 'none'} "
            f"| {plugin.citation} |"
            for name, plugin in registry
            if registry.origin(name) == "crossgraft" and getattr(plugin, "command", "tune") == "tune"
        ]
        head = "| name | title | options and defaults | source |\n|---|---|---|---|"
        parts += [f"## {kind.replace('_', ' ').capitalize()} (`{flags[kind]}`)", "", head, *rows, ""]
    return "\n".join(parts)


def fewshot_page() -> str:
    """Heads and episode samplers."""
    from crossgraft.fewshot import HEADS, SAMPLERS
    from crossgraft.tune.presets import PRESETS
    from crossgraft.tune.slots import options_in_words

    parts = [NOTE, "# What `crossgraft fewshot` can be told", ""]
    parts += ["Write a name, `name:value` for its first option, or `name:option=value,option=value`.", ""]
    for title, registry in (("Heads (`--heads`)", HEADS), ("Episode samplers (`--sampler`)", SAMPLERS)):
        rows = [
            f"| `{name}` | {_linked(plugin.title, f'heads/{name}.md')} | {options_in_words(plugin)} | {plugin.reference} |"
            for name, plugin in registry
            if registry.origin(name) == "crossgraft"
        ]
        parts += [f"## {title}", "", "| name | title | options and defaults | source |\n|---|---|---|---|", *rows, ""]
    presets = [
        f"| `{name}` | {plugin.title} | {options_in_words(plugin)} | {plugin.citation} |"
        for name, plugin in PRESETS
        if plugin.command == "fewshot" and PRESETS.origin(name) == "crossgraft"
    ]
    head = "| name | title | options and defaults | source |\n|---|---|---|---|"
    return "\n".join([*parts, "## Presets (`--preset`)", "", head, *presets, ""])


def confounders_page() -> str:
    """Every edit by its place in MICCAT."""
    from crossgraft.edit.edits import edits_by_place, options_with_units

    parts = [NOTE, "# Confounders and edits", ""]
    parts += [
        "What `crossgraft edit --with` and `crossgraft audit --confounder` take: a name, `name:value` for its first option, or "
        "`name:option=value,option=value`.",
        "",
    ]
    place = ""
    for row in edits_by_place():
        if row.place != place:
            place = row.place
            parts += [f"## {place[:1].upper()}{place[1:]}", ""]
            parts += ["| name | title | touches | options, defaults and units | source |\n|---|---|---|---|---|"]
        title = _linked(row.edit.title, f"audit/{row.name}.md")
        cells = [f"`{row.name}`", title, row.scope, options_with_units(row.edit) or "none", row.edit.reference]
        parts.append(f"| {' | '.join(cells)} |")
    return "\n".join([*parts, ""]).replace("|\n## ", "|\n\n## ")


def mitigations_page() -> str:
    """Every strategy that an audit compares with plain training."""
    from crossgraft.audit.mitigation import MITIGATIONS
    from crossgraft.tune.slots import options_in_words

    rows = [
        f"| `{name}` | {each.title} | {options_in_words(each) or 'none'} | {each.reference} |"
        for name, each in MITIGATIONS
        if MITIGATIONS.origin(name) == "crossgraft"
    ]
    text = "What `crossgraft audit --mitigate` takes; when each helps or misleads: [mitigation](../audit/mitigation.md)."
    head = "| name | title | options and defaults | source |\n|---|---|---|---|"
    return "\n".join([NOTE, "# Mitigations", "", text, "", head, *rows, ""])


def published_models_page() -> str:
    """Networks by the names that people use."""
    from crossgraft.models.published_names import PublishedName, published_names

    def cells(each: PublishedName) -> list[str]:
        return [f"`{each.name}`", f"`{each.source}`", each.trained_on, each.licence, each.licence_from]

    rows = [f"| {' | '.join(cells(each))} |" for each in published_names().values()]
    text = (
        "What `--models` takes as a name of its own, what it stands for, and where its licence was read: in timm or the package, "
        "on the model's card, or elsewhere. Licences are hints of 2026; the model card decides. Gates, commercial use and what "
        "was tried: [which models can I use](../how-to/which-models-can-i-use.md#published-networks)."
    )
    head = "| name | stands for | trained on | licence | read in |\n|---|---|---|---|---|"
    return "\n".join([NOTE, "# Published networks by name", "", text, "", head, *rows, ""])


MODELS_PAGE = FOLDER.parent / "how-to" / "which-models-can-i-use.md"
_BEGIN, _END = "<!-- Written by docs/generate.py from published_names.csv. -->\n", "<!-- End of what is written. -->\n"


def models_page() -> str:
    """The page of models with the table of published ones; all else of it is written by hand."""
    from crossgraft.models.published_names import PublishedName, published_names

    page = MODELS_PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(_BEGIN)
    _, _, behind = rest.partition(_END)

    def cells(each: PublishedName) -> list[str]:
        return [f"`{each.name}`", each.trained_on, each.licence, "yes" if each.gated else "no", each.commercial, each.tried]

    rows = [f"| {' | '.join(cells(each))} |\n" for each in published_names().values()]
    head = "| You write | trained on | licence | gate | commercial use | tried with |\n|---|---|---|---|---|---|\n"
    return "".join([before, _BEGIN, head, *rows, _END, behind])


def _linked(title: str, card: str) -> str:
    """The title, with a link to its card where there is one."""
    return f"[{title}](../{card})" if (FOLDER.parent / card).is_file() else title


def commands_page() -> str:
    """All options of every command."""
    from crossgraft.cli.help_pages import command_page, main_page
    from crossgraft.options.command import COMMANDS

    os.environ["COLUMNS"] = "100"
    helps = {"crossgraft": main_page(COMMANDS)}
    helps |= {f"crossgraft {name}": command_page(each, everything=True) for name, each in COMMANDS}
    parts = [NOTE, "# Commands", ""]
    for title, text in helps.items():
        parts += [f"## {title}", "", "```text", text, "```", ""]
    return "\n".join(parts)


def published_page() -> str:
    """The published benchmarks, evaluated again."""
    from crossgraft import evaluate_published
    from crossgraft.published.page import published_sections
    from crossgraft.published.verb import PUBLISHED
    from crossgraft.report.page import sections_as_markdown
    from crossgraft.report.source import Source

    parts = [NOTE, "# Published benchmarks, evaluated again", ""]
    for name in PUBLISHED:
        record = evaluate_published(name).record
        sections = published_sections(Source(record))
        parts += [f"# {record.title}", "", f"Data: {record.source}.", "", "```console"]
        parts += [f"$ crossgraft rank --published {name}", "```", "", sections_as_markdown(sections), ""]
    return "\n".join(parts)


def pages() -> Mapping[str, str]:
    """File name → text of every catalogue."""
    return {
        "scores.md": scores_page(),
        "data-sources.md": sources_page(),
        "fine-tuning.md": slots_page(),
        "few-shot.md": fewshot_page(),
        "confounders.md": confounders_page(),
        "mitigations.md": mitigations_page(),
        "published_models.md": published_models_page(),
        "../how-to/which-models-can-i-use.md": models_page(),
        "commands.md": commands_page(),
        "../results/published-tables.md": published_page(),
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
