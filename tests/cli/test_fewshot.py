"""``crossgraft fewshot``: heads on episodes of the user's images."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import crossgraft as package
from crossgraft import fewshot
from crossgraft.choice import choose, pieces
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.fewshot import MetaAdapterHead, NccHead, NWayKShot, TipAdapterHead
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.running import processes
from crossgraft.tune.presets import settings_of
from support import forked
from support.tiny import make_images

SAMPLER = "n_way_k_shot:ways=2,shots=2,queries=2"
FLAGS = ("--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--sampler", SAMPLER, "--episodes", "12", "--workers", "1")
HEADS = ("--heads", "ncc,copa:steps=3,weight_decay=0,logistic")


@pytest.fixture
def forked_workers(monkeypatch):
    """Workers that import nothing anew; ``tests/unit/running/test_workers.py`` starts them as users' do."""
    monkeypatch.setattr(processes, "multiprocessing", SimpleNamespace(get_context=lambda _: forked.context()))


@pytest.fixture
def compared(run_once):
    return run_once("fewshot", "images", *FLAGS, *HEADS, out="run")


def record_of(workspace, run="run"):
    return FewshotRecord.model_validate_json((workspace / run / "report.json").read_bytes())


def test_the_next_command_names_the_model_as_it_was_typed(compared):
    assert "crossgraft tune images --model zoo.yaml:narrow --code tiny_models.py" in " ".join(compared.out.split())


def test_captions_are_true_where_pictures_stand_below_each_other(compared, workspace):
    page = (workspace / "run" / "report.html").read_text(encoding="utf-8")
    assert "Second: rows are images" in page and re.search(r"\bLeft: ", page) is None


def test_too_few_classes_are_said_before_a_network_looks(workspace, crossgraft):
    flags = [each if each != SAMPLER else "meta_dataset" for each in FLAGS]
    outcome = crossgraft("fewshot", "images", *flags, "--out", "few")
    assert outcome.code == DataError.exit_code
    assert "images with narrow" not in outcome.err


def numbers(record):
    """Without what differs from run to run."""
    return [row.model_copy(update={"seconds": 0.0}) for row in record.heads]


def test_the_terminal_names_the_best_head_and_what_limits_it(compared):
    assert "on few-shot tasks of images" in compared.out
    assert "Heads on 12 episodes, best first:" in compared.out
    assert "copa:weight_decay=0.0,steps=3" in compared.out
    assert "12 episodes are few" in " ".join(compared.out.split())
    assert compared.out.splitlines()[-1] == "Report: run/report.html"
    assert "Adapting heads to episodes" in compared.err


def test_the_run_directory_holds_the_whole_run(compared, workspace):
    record = record_of(workspace)
    assert [row.head for row in record.heads if row.difference is None] == ["logistic"] == [record.baseline]
    assert {size.name: (size.least, size.most) for size in record.sizes}["Support images"] == (4, 4)
    episodes = (workspace / "run" / "episodes.csv").read_text().splitlines()
    assert episodes[0].startswith("ways,support,query,ncc,") and len(episodes) == 13
    html = (workspace / "run" / "report.html").read_text()
    assert "Difference to logistic" in html and str(workspace) not in html


def test_a_stopped_run_goes_on_with_the_same_numbers(compared, workspace, crossgraft):
    before = record_of(workspace)
    (workspace / "run" / "episodes" / "00010.json").unlink()
    run = json.loads((workspace / "run" / "run.json").read_text())
    (workspace / "run" / "run.json").write_text(json.dumps({**run, "state": "running"}))
    kept = workspace / "run" / "episodes" / "00000.json"
    written = kept.stat().st_mtime_ns
    crossgraft("fewshot", "images", *FLAGS, *HEADS, "--out", "run")
    assert numbers(record_of(workspace)) == numbers(before)
    assert kept.stat().st_mtime_ns == written


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.usefixtures("forked_workers")
def test_another_number_of_processes_gives_the_same_numbers(compared, workspace, crossgraft):
    crossgraft("fewshot", "images", *FLAGS[:-1], "2", *HEADS, "--out", "other")
    assert numbers(record_of(workspace, "other")) == numbers(record_of(workspace))


def test_python_gives_the_same_and_takes_objects(compared, workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    common = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 12, "workers": 1}
    result = package.run_episodes("images", heads=[NccHead(), "logistic"], sampler=NWayKShot(2, 2, 2), baseline="ncc", **common)
    assert result.record.head("ncc").accuracy == record_of(workspace).head("ncc").accuracy
    assert result.record.head("logistic").difference is not None
    assert result.episodes()["ncc"].mean() == pytest.approx(result.record.head("ncc").accuracy)
    assert result.to_frame()["head"].tolist() == [row.head for row in result.record.heads]
    assert result.summary().startswith("images with narrow: ")


@pytest.mark.parametrize(
    ("baseline", "sampler", "leans"),
    [
        ("logistic", "meta_dataset:min_ways=2", True),
        ("logistic:balanced=true", "meta_dataset:min_ways=2", False),
        ("ncc", "meta_dataset:min_ways=2", False),
        ("logistic", "n_way_k_shot:ways=2,shots=2,queries=2", False),
    ],
)
def test_a_baseline_that_favours_large_classes_is_known(compared, workspace, monkeypatch, baseline, sampler, leans):
    monkeypatch.chdir(workspace)
    common = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 2, "workers": 1}
    assert package.run_episodes("images", heads=baseline, sampler=sampler, **common).record.baseline_leans == leans


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"heads": "nc"}, UnknownNameError, "Unknown head: nc. Did you mean ncc"),
        ({"heads": ""}, UsageError, "heads is empty"),
        ({"heads": "ncc,ncc"}, UsageError, "The head ncc is given twice"),
        ({"heads": "copa:steps=-1"}, UsageError, "steps of copa must be a whole number"),
        ({"heads": [np.zeros(3)]}, UsageError, "or a scikit-learn classifier, not list. Heads: "),
        ({"heads": "meta_adapter"}, UsageError, "meta_adapter has to learn on base classes first"),
        ({"base_classes": ["a"]}, UsageError, "--base-classes is for heads that learn on base classes"),
        ({"baseline": "url"}, UnknownNameError, "Unknown baseline: url"),
        ({"sampler": 3}, UsageError, "sampler must be a name, perhaps with options, or a Sampler"),
        ({"sampler": "meta"}, UnknownNameError, "Unknown episode sampler: meta. Did you mean meta_dataset"),
        ({"model": "zoo.yaml"}, UsageError, "fewshot takes one model"),
        (
            {"sampler": "meta_dataset"},
            DataError,
            "needs 5 classes, and there are 2. Lower that number: --sampler meta_dataset:min_ways=2.",
        ),
    ],
)
def test_bad_input(workspace, monkeypatch, options, error, said):
    monkeypatch.chdir(workspace)
    usual = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 2, "workers": 1, "sampler": SAMPLER}
    with pytest.raises(error, match=said):
        package.run_episodes("images", **(usual | options))


@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.usefixtures("forked_workers")
def test_heads_inside_the_backbone_meet_the_same_tasks(workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    common = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 12, "sampler": SAMPLER}
    inside = "tsa:steps=2,copa_tsa:steps=2,fine_tuning:steps=2"
    result = package.run_episodes("images", heads=f"ncc,{inside}", workers=1, **common)
    alone = package.run_episodes("images", heads="ncc", workers=1, **common)
    assert result.record.head("ncc").accuracy == alone.record.head("ncc").accuracy
    assert {row.title for row in result.record.heads} >= {"TSA", "CoPA + TSA", "Fine-tuning"}
    several = package.run_episodes("images", heads=f"ncc,{inside}", workers=2, **common)
    assert numbers(several.record) == numbers(result.record)


def test_an_episode_has_classes_of_one_superclass(drawings, workspace, crossgraft, monkeypatch):
    """With two classes in each, no episode can have three ways."""
    typed = ("fewshot", *drawings, *FLAGS, "--heads", "ncc")
    done = crossgraft(*typed, "--superclass-column", "alphabet", "--out", "run")
    assert done.code == 0 and record_of(workspace).superclass_column == "alphabet"
    assert "one per episode, from alphabet" in (workspace / "run" / "report.html").read_text()
    three = tuple(SAMPLER.replace("ways=2", "ways=3") if each == SAMPLER else each for each in typed)
    assert crossgraft(*three, "--out", "three").code == 0
    done = crossgraft(*three, "--superclass-column", "alphabet")
    assert done.code == 3 and "3 classes" in done.err
    done = crossgraft(*typed, "--superclass-column", "alphabt")
    assert done.code in (2, 3) and "alphabt" in done.err and "alphabet" in done.err


def test_small_classes_of_a_superclass_are_named_before_a_network_looks(drawings, workspace, crossgraft):
    table = (workspace / "drawings.csv").read_text()
    (workspace / "drawings.csv").write_text(table.replace("c0,a0", "rare,a0", 1))
    typed = ("fewshot", *drawings, *FLAGS, "--heads", "ncc", "--superclass-column", "alphabet")
    done = crossgraft(*typed)
    assert done.code == 3 and "have: rare (1). Leave" in done.err and "images with narrow" not in done.err


def test_numbers_of_numpy_are_kept_in_run_directories(workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    same = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "workers": 1, "heads": "ncc", "sampler": SAMPLER}
    package.run_episodes("images", episodes=np.int64(2), seed=np.int64(3), out="run", **same)
    assert json.loads((workspace / "run" / "run.json").read_text())["seed"] == 3
    assert package.run_episodes("images", episodes=2, seed=3, out="run", **same).out is not None


@pytest.fixture
def five_classes(workspace):
    """Enough of them to learn on three, and to draw from two."""
    make_images(workspace / "five", dict.fromkeys(("aa", "bb", "cc", "dd", "ee"), 8))
    return workspace


def test_base_classes_are_named_with_commas(five_classes, crossgraft):
    done = crossgraft("fewshot", "five", *FLAGS, "--heads", "ncc,meta_adapter:epochs=1", "--base-classes", "aa, bb,cc", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["base_classes"] == ["aa", "bb", "cc"]
    unknown = crossgraft("fewshot", "five", *FLAGS, "--heads", "meta_adapter", "--base-classes", "aa,bb,xx")
    assert (unknown.code, "Unknown class: xx" in unknown.err) == (2, True)


def test_heads_that_all_leaves_out_are_named_with_the_reason(workspace, crossgraft):
    done = crossgraft("fewshot", "images", *FLAGS[:-3], "2", *FLAGS[-2:], "--heads", "all", "--out", "run")
    assert done.code == 0, done.err
    record = record_of(workspace)
    assert list(record.left_out) == ["meta_adapter", "zero_shot", "tsa", "copa_tsa", "fine_tuning"] and len(record.heads) == 6
    page = (workspace / "run" / "report.html").read_text(encoding="utf-8")
    for name, why in record.left_out.items():
        assert f"{name} is left out: it {why}." in " ".join(done.err.split())
        assert f"{name} is left out of all heads: it {why.partition(';')[0]}" in page
        assert f"{name} is left out of all heads" in " ".join(done.out.split())


def test_base_classes_are_learned_from_their_class_weights(five_classes, crossgraft):
    """Where the episodes start from them; a file that lacks a base class is refused."""
    vectors = dict(zip(("aa", "bb", "cc", "dd", "ee"), np.eye(8), strict=False))
    np.savez("all.npz", **vectors)
    np.savez("few.npz", **{name: vectors[name] for name in ("cc", "dd", "ee")})
    typed = ("fewshot", "five", *FLAGS, "--base-classes", "aa,bb,cc", "--heads")
    assert crossgraft(*typed, "meta_adapter:epochs=1,class_weights=all.npz").code == 0
    few = crossgraft(*typed, "meta_adapter:epochs=1,class_weights=few.npz")
    assert few.code == 3 and "meta_adapter on the base classes: No class weights for aa, bb" in " ".join(few.err.split())


def test_class_weights_that_name_no_class_are_refused(five_classes, monkeypatch):
    """Rows of an array would be taken for whichever classes an episode has."""
    monkeypatch.chdir(five_classes)
    with pytest.raises(UsageError, match=r"class_weights of tip_adapter.* is of type ndarray, which does not say which class"):
        package.run_episodes(
            "five", model="zoo.yaml:narrow", allow_code="tiny_models.py", heads=[TipAdapterHead(class_weights=np.eye(8)[:2])]
        )


def test_a_control_that_learns_nothing_stays_as_it_was_drawn(five_classes, monkeypatch):
    """And a head that has learned already is not taught again; base classes may be a NumPy array."""
    monkeypatch.chdir(five_classes)
    taught = []
    learn = MetaAdapterHead.meta_fit
    monkeypatch.setattr(
        MetaAdapterHead, "meta_fit", lambda head, *data, **more: taught.append(head) or learn(head, *data, **more)
    )
    package.run_episodes(
        "five", model="zoo.yaml:narrow", allow_code="tiny_models.py", workers=1, episodes=2, sampler=NWayKShot(2, 2),
        heads=[MetaAdapterHead(epochs=1), MetaAdapterHead(adapter_weights="initial")], base_classes=np.array(["aa", "bb", "cc"]),
    )  # fmt: skip
    assert len(taught) == 1 and taught[0].epochs == 1


def test_pages_and_tables_show_no_folder_of_class_weights(workspace, crossgraft):
    np.savez("weights.npz", benign=np.eye(8)[0], malignant=np.eye(8)[1])
    file = workspace / "weights.npz"
    heads = f"logistic,tip_adapter:class_weights={file}"
    done = crossgraft("fewshot", "images", *FLAGS, "--heads", heads, "--baseline", heads.partition(",")[2], "--out", "few")
    assert done.code == 0, done.err
    query = ("--support", "images", "--query", "images", *FLAGS[:4], "--head", f"tip_adapter:class_weights={file}")
    assert crossgraft("fewshot", *query, "--out", "one").code == 0
    for run, names in (
        ("few", ("report.html", "report.json", "heads.csv", "episodes.csv")),
        ("one", ("report.html", "report.json")),
    ):
        for name in names:
            text = (workspace / run / name).read_text(encoding="utf-8")
            assert str(workspace) not in text and "tip_adapter:class_weights=…/weights.npz" in text, name


def test_another_head_of_the_same_name_is_not_given_the_numbers_of_the_first(five_classes, monkeypatch):
    monkeypatch.chdir(five_classes)
    asked = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "workers": 1, "episodes": 4, "sampler": NWayKShot(5, 2)}

    def accuracies(head, **where):
        found = package.run_episodes("five", heads=[head, NccHead()], **asked, **where)
        return found.table.accuracies[:, 0].tolist()

    strong, weak = LogisticRegression(C=1e4), LogisticRegression(C=1e-6)
    first = accuracies(weak, out="run")
    assert accuracies(strong, out="run") == accuracies(strong) != first


def test_heads_may_hold_arrays_where_a_run_is_kept(workspace, monkeypatch):
    """One array has no truth value, and a written dictionary is longer than a path may be."""
    monkeypatch.chdir(workspace)
    vectors = np.random.default_rng(0).normal(size=(2, 8))
    heads = [
        TipAdapterHead(class_weights=dict(zip(("benign", "malignant"), vectors, strict=True))),
        TipAdapterHead(class_weights=vectors),
    ]
    found = package.run_episodes(
        "images", model="zoo.yaml:narrow", allow_code="tiny_models.py", workers=1, episodes=2, heads=heads,
        sampler=NWayKShot(2, 2), out="run",
    )  # fmt: skip
    first, second = found.table.heads
    assert first != second and max(len(first), len(second)) < 40
    assert found.table.accuracies[:, 0].tolist() == found.table.accuracies[:, 1].tolist()


def test_one_episode_has_no_interval(workspace, crossgraft):
    flags = [each if each != "12" else "1" for each in FLAGS]
    done = crossgraft("fewshot", "images", *flags, "--heads", "ncc,logistic", "--out", "run")
    assert done.code == 0 and "± 0.000" not in done.out and "mean of 1 episode" in " ".join(done.out.split())
    assert {row.half_width for row in record_of(workspace).heads} == {None}


def test_small_classes_are_named_before_a_network_looks(five_classes, crossgraft):
    """In two of three episodes of two classes the small one would not be."""
    for image in sorted((five_classes / "five" / "ee").iterdir())[3:]:
        image.unlink()
    flags = [each if each != SAMPLER else "n_way_k_shot:ways=2,shots=3" for each in FLAGS]
    done = crossgraft("fewshot", "five", *flags, "--heads", "ncc", "--holdout", "0")
    assert done.code == 3 and "have: ee (3). Leave" in done.err and "images with narrow" not in done.err


def test_heads_of_the_caller_stay_as_they_are(five_classes, monkeypatch):
    monkeypatch.chdir(five_classes)
    head = MetaAdapterHead(epochs=1)
    for _ in range(2):
        package.run_episodes(
            "five", model="zoo.yaml:narrow", allow_code="tiny_models.py", workers=1, episodes=2, heads=[head],
            sampler=NWayKShot(2, 2), base_classes="aa,bb,cc",
        )  # fmt: skip
        assert head.adapter_weights is None


def test_a_name_that_is_not_known_inside_a_head_is_an_error_with_its_place(workspace, crossgraft):
    done = crossgraft("fewshot", "images", *FLAGS, "--heads", "ncc,tsa:layers=nope")
    assert done.code == 2 and "Internal error" not in done.err
    assert "tsa:layers=nope" in done.err and "nope" in done.err


def test_several_seeds_are_as_many_runs_of_their_own(workspace, monkeypatch):
    """Other episodes, and other random numbers of heads, for each; and a stopped run goes on."""
    monkeypatch.chdir(workspace)
    common = {"model": "zoo.yaml:narrow", "allow_code": "tiny_models.py", "episodes": 6, "sampler": SAMPLER, "workers": 1}
    common["holdout"] = 0  # the split is that of the first seed
    with_seed = "copa:steps=2,init=random,seed={}"
    heads = f"ncc,{with_seed.format(4)}"
    result = package.run_episodes("images", heads=heads, seeds=3, seed=1, baseline="ncc", out="seeds", **common)
    alone = [
        package.run_episodes("images", heads=f"ncc,{with_seed.format(4 + k)}", seed=1 + k, baseline="ncc", **common).record
        for k in range(3)
    ]
    for title in ("NCC", "CoPA"):
        row = next(row for row in result.record.heads if row.title == title)
        means = [next(each.accuracy for each in one.heads if each.title == title) for one in alone]
        assert row.by_seed == pytest.approx(means) and row.accuracy == pytest.approx(np.mean(means))
        assert row.seeds_half_width == pytest.approx(4.30265 * np.std(means, ddof=1) / 3**0.5)  # t of two degrees of freedom
    assert result.record.num_seeds == 3 and len(result.episodes()) == 18
    assert "mean of 3 seeds of 6 episodes each (over seeds ±" in result.summary()
    before = record_of(workspace, "seeds")
    (workspace / "seeds" / "episodes" / "seed-2" / "00000.json").unlink()
    run = json.loads((workspace / "seeds" / "run.json").read_text())
    (workspace / "seeds" / "run.json").write_text(json.dumps({**run, "state": "running"}))
    package.run_episodes("images", heads=heads, seeds=3, seed=1, baseline="ncc", out="seeds", **common)
    assert numbers(record_of(workspace, "seeds")) == numbers(before)
    two = package.run_episodes("images", heads="ncc", seeds=2, **common).record.heads[0]
    assert two.seeds_half_width is None and two.no_seeds_interval_reason == "2 seeds, where 3 are needed"


def test_a_report_of_one_seed_is_as_it_was_before_there_were_several(compared, workspace):
    written = json.loads((workspace / "run" / "report.json").read_text())
    assert {"num_seeds", "seen"}.isdisjoint(written) and {"by_seed", "seeds_half_width"}.isdisjoint(written["heads"][0])


def test_finished_runs_are_averaged(compared, workspace, crossgraft):
    crossgraft("fewshot", "images", *FLAGS, *HEADS, "--holdout", "0", "--seen", "--out", "seen")
    outcome = crossgraft("fewshot", "--average", "run,seen", "--out", "averages")
    assert outcome.code == 0, outcome.err
    assert "Averages over 1 seen and 1 unseen data sets" in outcome.out
    run = json.loads((workspace / "averages" / "run.json").read_text())
    assert run["command_line"] == "crossgraft fewshot --average run,seen --out averages"
    assert (workspace / "averages" / "sets.csv").read_text().startswith("set,seen,head,accuracy,half_width")
    again = crossgraft("report", "averages")
    assert again.code == 0
    twice = crossgraft("fewshot", "--average", f"run,{workspace / 'run'},seen", "--out", "twice")
    assert twice.code == 0, twice.err
    first, second = ((workspace / out / "sets.csv").read_text() for out in ("averages", "twice"))
    assert first == second  # one folder under two names is one run
    refused = crossgraft("fewshot", "images", "--average", "run")
    assert refused.code == UsageError.exit_code and "it cannot be used with DATA" in refused.err


def test_a_preset_is_a_published_set_of_heads(five_classes, crossgraft):
    (five_classes / "weights.npz").unlink(missing_ok=True)
    np.savez("weights.npz", **dict(zip(("aa", "bb", "cc", "dd", "ee"), np.eye(8), strict=False)))
    typed = ("fewshot", "five", "--model", "zoo.yaml:narrow", "--code", "tiny_models.py", "--episodes", "5", "--workers", "1")
    preset = "sim_few_shot:class_weights=weights.npz,ways=2,meta_adapter=true"
    refused = crossgraft(*typed, "--preset", preset, "--sampler", SAMPLER)
    assert refused.code == UsageError.exit_code and "--sampler n_way_k_shot:ways=2,shots=16, and --sampler" in refused.err
    few = crossgraft(*typed, "--preset", preset, "--base-classes", "aa,bb")
    assert few.code == DataError.exit_code and "Too few images" in few.err  # five images of each, and 16 are wanted
    settings = settings_of(preset, command="fewshot")
    heads = pieces(settings["heads"])
    assert [choose(fewshot.HEADS, head).name for head in heads] == ["zero_shot", *["tip_adapter"] * 2, *["meta_adapter"] * 2]
    assert [choose(fewshot.HEADS, head).rho_sim_weight for head in heads[1:]] == [0, 0.005, 0, 0.005]  # SIM, section 4.1
    assert settings["baseline"] == heads[1]
    assert choose(fewshot.SAMPLERS, settings["sampler"]).shots == 16
    own = [*typed, "--sampler", SAMPLER, "--heads", "ncc,zero_shot:class_weights=weights.npz"]
    assert crossgraft(*own, "--out", "zero").code == 0
    assert {row.title for row in record_of(five_classes, "zero").heads} == {"NCC", "Zero-shot"}
