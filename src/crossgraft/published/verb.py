"""``crossgraft rank --published``: published benchmarks, or a user's table, evaluated again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crossgraft.errors import UnknownNameError
from crossgraft.published.record import PublishedRecord
from crossgraft.published.result import PublishedResult
from crossgraft.rank.options import PublishedOptions
from crossgraft.rank.published.benchmark import read_benchmark_table
from crossgraft.rank.published.evaluate import evaluate_benchmark
from crossgraft.rank.published.papers import (
    ablation_table,
    auc_table,
    fig_6_4_answers,
    itm_errata,
    itm_tables,
    reproduce_table,
    thesis_errata,
)
from crossgraft.rank.published.tables import (
    COMPRESSED,
    PUBLISHED,
    TABLES_OF,
    itm_benchmark,
    published_tables,
    shipped,
    thesis_architectures,
    thesis_datasets,
)
from crossgraft.records.base import Reference
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import open_run
from crossgraft.running.verb import Run, verb
from crossgraft.select.planning import parse_budget
from crossgraft.select.replay import replay, replay_published

REFERENCES = [
    Reference(key="weighted Kendall", text="Vigna, A weighted correlation index for rankings with ties, WWW 2015."),
    Reference(key="Friedman", text="Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 2006."),
    Reference(key="static prior", text="Singh, Hess and Vanschoren, arXiv 2510.06448."),
    Reference(key="stability", text="Agostinelli et al., How stable are transferability metrics evaluations?, ECCV 2022."),
]

_BUDGETS = [parse_budget(text) for text in ("10%", "25%", "50%")]


@verb("rank", PublishedOptions)
def evaluate_published(name: str | Path, options: PublishedOptions, run: Run) -> PublishedResult:
    """Evaluate published results again, or a table of your own, with the same controls and intervals.

    Args:
        name: ``thesis``, ``itm``, ``sfda_cnn``, ``tmlr``, ``medmnistplus``, ``shift``, ``dart``, or a CSV file (see
            ``read_benchmark_table``).
        {options}

    Returns:
        Every number of the page; with ``out`` also ``report.json`` and ``report.html`` there.

    Raises:
        UnknownNameError: Neither a published benchmark nor a CSV file.
        DataError: The table is badly shaped.
    """
    result = PublishedResult(_evaluate(name))
    if options.out is not None:
        with open_run(
            Path(options.out),
            command="rank --published",
            command_line=_said_again(run, str(name), options.out),
            config={"published": Path(name).name},
            seed=0,
            overwrite=options.overwrite,
        ) as directory:
            page = publish(directory, result.record, run.reporter)
            return replace(result, out=directory.path, report=page)
    return result


def _said_again(run: Run, name: str, out: str | Path) -> str:
    """As of all verbs; only that the command takes the name by a flag."""
    line = run.said_again({}, out=out)
    return line.replace(f"crossgraft {run.command} ", f"crossgraft {run.command} --published ", 1)


def _evaluate(name: str | Path) -> PublishedRecord:
    if str(name) in TABLES_OF:
        whole = _evaluate(TABLES_OF[str(name)])
        own = [scenario for scenario in whole.scenarios if scenario.name == str(name)]
        replays = [each for each in whole.replays if each.name == str(name)]
        return whole.model_copy(update={"name": str(name), "title": own[0].title, "scenarios": own, "replays": replays})
    if str(name) == "thesis":
        return _thesis()
    if str(name) == "itm":
        return _itm()
    if str(name) in COMPRESSED:
        return _known(str(name))
    if Path(name).suffix.lower() == ".csv":
        benchmark = read_benchmark_table(name)
        scenario = evaluate_benchmark(benchmark)
        source = f"Your table {Path(name).name}"
        title = f"Scores judged on {benchmark.name}"
        return PublishedRecord(
            name=benchmark.name,
            title=title,
            source=source,
            scenarios=[scenario],
            replays=[replay(benchmark, _BUDGETS)],
            references=REFERENCES,
        )
    raise UnknownNameError(
        "published benchmark", str(name), (*PUBLISHED, *TABLES_OF), hint="Or give a CSV file of your own results."
    )


def _known(name: str) -> PublishedRecord:
    """One of the tables that ship as known results; a publication with several metrics has a scenario of each."""
    tables = [table for table in published_tables() if table.name.startswith(name)]
    return PublishedRecord(
        name=name,
        title=f"{tables[0].origin}: the results of fine-tuning beside a ranking that never looks",
        source=tables[0].source,
        scenarios=[evaluate_benchmark(table) for table in tables],
        replays=[replay_published(table.name, _BUDGETS) for table in tables],
        references=REFERENCES,
    )


def _thesis() -> PublishedRecord:
    datasets, architectures = thesis_datasets(), thesis_architectures()
    by_dataset, by_architecture = evaluate_benchmark(datasets), evaluate_benchmark(architectures)
    note = (
        "PARC, NCTI, LEEP, N-LEEP and the proposed score are reversed as in Table 6.3, a choice made after the results were "
        "known."
    )
    return PublishedRecord(
        name="thesis",
        title="Cross-domain transfer in medical imaging: the scores judged again",
        source=shipped("thesis")["source"],
        scenarios=[
            by_dataset.model_copy(update={"reproduction": reproduce_table(datasets, "dataset", "Table 6.2")}),
            by_architecture.model_copy(
                update={
                    "reproduction": reproduce_table(architectures, "model", "Table 6.3"),
                    "notes": [note, *by_architecture.notes],
                }
            ),
        ],
        cited=[
            ablation_table(datasets),
            auc_table("dataset", "Table 6.4: AUC × 100 of one ResNet18 from each source"),
            auc_table("model", "Table 6.5: AUC × 100 of each architecture from ImageNet"),
        ],
        slips=thesis_errata(datasets, architectures),
        answers=fig_6_4_answers(datasets),
        replays=[replay_published(architectures.name, _BUDGETS)],
        references=REFERENCES,
    )


def _itm() -> PublishedRecord:
    return PublishedRecord(
        name="itm",
        title="ITM's ten foundation models: the printed correlations beside a ranking that never looks",
        source=shipped("itm")["source"],
        scenarios=[evaluate_benchmark(itm_benchmark())],
        cited=itm_tables(),
        slips=itm_errata(),
        replays=[replay_published("itm", _BUDGETS)],
        references=REFERENCES,
    )
