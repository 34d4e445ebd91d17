"""What a study file says, and what is wrong with one."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft import run_study
from crossgraft.bench.job import call
from crossgraft.bench.making import JobMaker
from crossgraft.bench.study import read_study
from crossgraft.errors import UnknownNameError, UntrustedCodeError, UsageError

GRID = """\
command: tune
fixed:
  data: digits
  epochs: 3
grid:
  model: [resnet18, vit_tiny_patch16_224]
settings:
  plain:
  strong: {weight_decay: 0.3}
seeds: 2
"""


def written(tmp_path, text, name="study.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_every_combination_is_a_job(tmp_path):
    study = read_study(written(tmp_path, GRID))
    assert len(study.jobs) == len({job.key for job in study.jobs}) == 8
    assert dict(study.cells[-1]) == {"model": "vit_tiny_patch16_224", "settings": "strong", "seed": "1"}
    assert study.jobs[-1].inputs == ("digits",)
    assert study.jobs[-1].keywords == {
        "workers": 1, "epochs": 3, "model": "vit_tiny_patch16_224", "weight_decay": 0.3, "seed": 1
    }  # fmt: skip
    assert (study.compare, study.over, study.name) == ("settings", "model", "study")


def test_cells_are_excluded_and_included_once(tmp_path):
    more = "exclude:\n- {model: resnet18, settings: strong}\ninclude:\n- {model: resnet18, settings: strong, seed: 1}\n"
    cells = read_study(written(tmp_path, GRID + more)).cells
    assert len(cells) == 7
    assert [dict(cell) for cell in cells].count({"model": "resnet18", "settings": "strong", "seed": "1"}) == 1


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("epochs: 3", "epoch: 3", 4, "Unknown option: epoch. Did you mean epochs"),
        ("epochs: 3", "epochs: three", 4, "epochs"),
        ("seeds: 2", "seed: 2", 10, "Unknown key: seed. Did you mean seeds"),
        ("seeds: 2", "seeds: [a]", 10, "whole numbers"),
        ("weight_decay: 0.3", "weight_dekay: 0.3", 9, "Unknown option: weight_dekay. Did you mean weight_decay"),
        ("command: tune", "command: tume", 1, "Unknown command: tume. Did you mean tune"),
        ("command: tune", "command: split", 1, "makes no run folder"),
        ("epochs: 3", "out: runs/x", 4, "out cannot be set for a job"),
        ("epochs: 3", "allow_code: [a]", 4, "which a file cannot allow"),
        ("seeds: 2", "compare: modell", 10, "Unknown factor: modell. Did you mean model"),
        ("seeds: 2", "exclude:\n- {model: resnet81}", 10, "Unknown level of model: resnet81. Did you mean resnet18"),
        ("seeds: 2", "threads: 0", 10, "whole number from 1"),
        ("seeds: 2", "better: higher", 10, "larger or smaller"),
        ("[resnet18, vit_tiny_patch16_224]", "resnet18", 6, "a list, or a mapping"),
        ("[resnet18, vit_tiny_patch16_224]", "[/a/net.pt, /b/net.pt]", 6, "called alike. Name them"),
        ("  plain:", "  plain: 3", 8, "must be a mapping"),
        ("seeds: 2", "exclude: 3", 10, "a list of mappings"),
        ("seeds: 2", "include: {seed: 1}", 10, "a list of mappings"),
        ("seeds: 2", "compare: [model]", 10, "Unknown factor"),
        ("seeds: 2", "metric: [auc]", 10, "the name of a number"),
        ("seeds: 2", "metric: 3", 10, "the name of a number"),
        ("seeds: 2", "title: [a]", 10, "is a text"),
        ("seeds: 2", "seeds: [1, 1]", 10, "A seed is there twice"),
        ("seeds: 2", "smoke: {seed: 1}", 10, "Unknown key: seed. Did you mean seeds"),
        ("seeds: 2", "smoke: []", 10, "must be a mapping"),
        ("[resnet18, vit_tiny_patch16_224]", "{}", 6, "a list, or a mapping"),
        ("[resnet18, vit_tiny_patch16_224]", "[resnet18]\n  seed: [1]", 11, "`grid` has the levels of seed already"),
        ("[resnet18, vit_tiny_patch16_224]", "[resnet18]\n  settings: [1]", 8, "`grid` has the levels of settings already"),
        ("epochs: 3", "batch-size: 3\n  batch_size: 4", 2, "has a name twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, old, new, line, message):
    assert old in GRID
    with pytest.raises(UsageError) as refused:
        read_study(written(tmp_path, GRID.replace(old, new)))
    text = str(refused.value)
    assert f"study.yaml, line {line}: " in text and message in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- a\n", "must hold a mapping"),
        ("command: [tune\n", "is not a YAML file"),
        ("grid: {model: [a]}\n", "needs `command`"),
        ("command: tune\ngrid: []\n", "must be a mapping"),
        ("command: tune\nseeds: 1000000000000\n", "100,001 combinations; at most 100,000"),
        (f"command: tune\ngrid: {{epochs: {list(range(1, 999))}, batch_size: {list(range(1, 999))}}}\n", "combinations; at most"),
        ("command: tune\nfixed: {data: digits, model: a}\nexclude: [{seed: 0}]\nseeds: 1\n", "has no job"),
    ],
)
def test_files_that_are_no_study(tmp_path, content, message):
    with pytest.raises(UsageError, match=message):
        read_study(written(tmp_path, content))


def test_smoke_is_the_same_protocol_with_other_levels(tmp_path):
    small = "smoke:\n  fixed: {data: digits, epochs: 1}\n  seeds: 1\n"
    whole, smoke = (read_study(written(tmp_path, GRID + small), smoke=smoke) for smoke in (False, True))
    assert (len(whole.jobs), len(smoke.jobs)) == (8, 4)
    assert {job.keywords["epochs"] for job in smoke.jobs} == {1}
    with pytest.raises(UsageError, match="no key `smoke`"):
        read_study(written(tmp_path, GRID), smoke=True)


def key(values, **more):
    return JobMaker("tune", **more).job({"data": "digits", "model": "resnet18", **values}).key


def test_a_job_is_named_by_what_decides_its_numbers():
    assert key({"epochs": 3}) != key({"epochs": 4}) != key({})
    assert key({"no_images": False, "workers": 3}) == key({})  # at its default; decides nothing
    assert key({}, num_threads=2) != key({})
    assert JobMaker("tune").job({"data": "digits", "model": "resnet18", "compare": "full"}).verb.endswith("compare_fine_tunings")


@given(st.permutations([("epochs", 3), ("weight_decay", 0.1), ("seed", 4), ("method", "linear")]))
def test_the_order_of_options_does_not_matter(items):
    assert key(dict(items)) == key({"epochs": 3, "weight_decay": 0.1, "seed": 4, "method": "linear"})


@given(st.lists(st.sampled_from([1, 2, 1.0, "1", "2", None]), min_size=1, max_size=6))
def test_a_job_is_the_same_whatever_jobs_were_made_before_it(epochs):
    """Values that are equal or look alike are not mistaken for each other."""

    def outcome(maker, value):
        try:
            job = maker.job({"data": "digits", "model": "resnet18", "epochs": value})
            return job.key, repr(job.keywords)
        except UsageError as error:
            return str(error)

    together = JobMaker("tune")
    assert [outcome(together, value) for value in epochs] == [outcome(JobMaker("tune"), value) for value in epochs]


def test_what_cells_share_is_checked_once(monkeypatch):
    from crossgraft.bench import making

    seen = []
    monkeypatch.setattr(making, "checked_value", lambda option, value: seen.append((option.name, value)) or value)
    grid = {"model": ["resnet18", "resnet50"], "weight_decay": [0.1, 0.2]}
    read_study({"command": "tune", "fixed": {"data": "digits", "epochs": 3}, "grid": grid, "seeds": 300})
    assert len(seen) == len({*seen}) == 1 + 1 + 2 + 2 + 300


def test_options_that_exclude_each_other_are_refused_in_any_cell(tmp_path):
    one = {"command": "tune", "fixed": {"data": "digits", "model": "resnet18"}}
    for settings in ({"none": {}, "bad": {"seeds": 2}}, {"bad": {"layer_pca": "head"}, "none": {}}):
        with pytest.raises(UsageError, match="Give --compare too"):
            read_study({**one, "settings": settings})


def test_a_status_imports_neither_pages_nor_statistics(tmp_path):
    """It may be asked for every minute: 10 000 jobs cost less than a second."""
    written(tmp_path, GRID)
    asked = "import sys\nfrom crossgraft.cli.main import main\nmain(['bench', 'study.yaml', '--out', 'out', '--status'])\n"
    asked += "print({'scipy', 'matplotlib', 'torch', 'pandas'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "8 jobs (8 missing)" in done.stdout and done.stdout.splitlines()[-1] == "set()", done


def test_objects_cannot_be_sent_so_they_are_refused():
    with pytest.raises(UsageError, match="model is a object"):
        JobMaker("tune").job({"data": "digits", "model": object()})


def test_a_function_that_a_file_names_does_not_run(tmp_path, monkeypatch):
    (tmp_path / "hostile_nets.py").write_text("from pathlib import Path\nPath('ran').touch()\ndef net(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="names the function hostile_nets:net, which would run"):
        JobMaker("audit").job({"model": "resnet18, hostile_nets:net", "data": "digits"})
    job = JobMaker("tune").job({"data": "digits", "model": "hostile_nets:net"})
    with pytest.raises(UntrustedCodeError):
        call(job, tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_a_plan_runs_no_function_that_a_file_names(tmp_path, monkeypatch):
    (tmp_path / "hostile_plan.py").write_text("from pathlib import Path\nPath('ran').touch()\ndef net(): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UntrustedCodeError):
        run_study({"command": "tune", "fixed": {"data": "digits", "model": "hostile_plan:net"}}, out=tmp_path / "out", plan=True)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("command", "values", "message"),
    [
        ("audit", {"model": ["os:getcwd"], "data": "digits"}, "model is a text, not"),
        ("tune", {"data": 3, "model": "a"}, "data is a text, not 3"),
        ("tune", {"data": ["a", "b"], "model": "a"}, "data is a text, not"),
        ("distil", {"runs": ["a", 3], "data": "a", "model": "a"}, "runs is a text, or a list of them, not 3"),
        ("distil", {"runs": "os:getcwd", "data": "a", "model": "a"}, "names the function os:getcwd"),
        ("audit", {"model": "runs/a"}, "crossgraft audit needs data: "),
        ("bench", {"study": "study.yaml"}, "cannot consist of studies"),
    ],
)
def test_inputs_are_texts_and_what_is_needed_is_said(command, values, message):
    with pytest.raises(UsageError, match=message):
        JobMaker(command).job(values)


def test_inputs_that_repeat_are_a_list():
    one, two = (JobMaker("distil").job({"runs": runs, "data": "a", "model": "b"}) for runs in ("a", ["a", "b"]))
    assert [list(map(str, job.inputs[0])) for job in (one, two)] == [["a"], ["a", "b"]] and one.key != two.key


def test_a_hyphen_is_an_underscore(tmp_path):
    assert read_study(written(tmp_path, GRID.replace("epochs: 3", "batch-size: 4"))).jobs[0].keywords["batch_size"] == 4


def test_unknown_engines_and_factors_name_the_nearest():
    from crossgraft.bench.engines import ENGINES

    with pytest.raises(UnknownNameError, match="Did you mean slurm"):
        ENGINES.get("slurmm")


def test_a_hyphen_is_an_underscore_everywhere(tmp_path):
    text = GRID.replace("{weight_decay: 0.3}", "{weight-decay: 0.3}").replace("model: [", "batch-size: [3, 4]\n  model: [")
    study = read_study(written(tmp_path, text + "compare: batch-size\nexclude: [{batch-size: 3}]\n"))
    assert (study.compare, len(study.jobs)) == ("batch_size", 8)


def test_what_is_wrong_in_smoke_is_said_with_its_line(tmp_path):
    small = "smoke:\n  seeds: 1\n  fixed:\n    data: digits\n    epoch: 1\n"
    with pytest.raises(UsageError, match=r"study\.yaml, line 15: Unknown option: epoch"):
        read_study(written(tmp_path, GRID + small), smoke=True)


def test_a_level_may_set_several_options_at_once(tmp_path):
    together = GRID.replace("  data: digits\n", "").replace(
        "grid:\n", "grid:\n  data:\n    small: {data: digits, batch-size: 8}\n    plain: digits\n"
    )
    study = read_study(written(tmp_path, together))
    assert (len(study.jobs), study.over, list(study.factors["data"])) == (16, "data", ["small", "plain"])
    assert [job.keywords.get("batch_size") for job in study.jobs] == [8] * 8 + [None] * 8
    with pytest.raises(UsageError, match=r"study\.yaml, line 6: .*batch_sise"):
        read_study(written(tmp_path, together.replace("batch-size", "batch_sise")))


def test_what_is_included_may_have_options_of_its_own(tmp_path):
    own = GRID + "include:\n- {model: resnet18, settings: strong, epochs: 9, weight-decay: 0.1}\n"
    study = read_study(written(tmp_path, own))
    assert [(job.keywords["epochs"], job.keywords.get("weight_decay")) for job in study.jobs[2:4]] == [(9, 0.1)] * 2
    assert len(study.jobs) == 8 and {job.keywords["epochs"] for job in study.jobs[:2] + study.jobs[4:]} == {3}
    with pytest.raises(UsageError, match=r"line 11: Unknown option: epoch. Did you mean epochs"):
        read_study(written(tmp_path, own.replace("epochs: 9", "epoch: 9")))
    with pytest.raises(UsageError, match="Unknown factor: epochs"):
        read_study(written(tmp_path, GRID + "include:\n- {epochs: 9}\n"))
    with pytest.raises(UsageError, match="Unknown factor: epochs"):
        read_study(written(tmp_path, GRID + "exclude:\n- {model: resnet18, epochs: 9}\n"))


def test_rows_of_results_are_compared_like_levels(tmp_path):
    study = read_study(written(tmp_path, GRID + "rows: {variant: [full, linear]}\n"))
    assert (len(study.jobs), study.compare, dict(study.rows)) == (8, "variant", {"variant": ["full", "linear"]})
    with pytest.raises(UsageError, match="line 11: model is a factor of the jobs already"):
        read_study(written(tmp_path, GRID + "rows: {model: [a, b]}\n"))
    for wrong in ("{variant: full}", "{variant: []}", "{variant: [a], head: [b]}"):
        with pytest.raises(UsageError, match="one column of the results and its values"):
            read_study(written(tmp_path, GRID + f"rows: {wrong}\n"))
