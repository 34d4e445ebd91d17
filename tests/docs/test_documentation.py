"""The documentation is run: every printed command, every Python block that stands alone, every link, every catalogue."""

import importlib.util
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from crossgraft.audit.verb import EXIT_GATE
from crossgraft.bench.engines import local
from crossgraft.cli.main import main
from crossgraft.tune.engine import launch
from support import forked
from support.documented import fill_hub_cache, forget_examples, make_documented_workspace
from support.few_pages import leave_out_pages
from support.few_rounds import leave_out_rounds
from support.here import Here
from support.short_demo import fewer_digits, shorten

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")])
FAILS_ON_PURPOSE = {
    "crossgraft rank busi/metadata.csv": 3,
    "crossgraft rank hf:my-group/chest-xray": 4,
    "crossgraft check pneumoniamnist.npz": 3,
    "crossgraft check breastmnist.npz": 3,
}
"""Commands that a page prints to show their error, and the exit code."""
NAMED, SMALLEST = "mobilenetv2_100", "weights/my_net.safetensors"
BY_NAME = (
    "crossgraft tune my_images --model mobilenetv2_100",
    "crossgraft fewshot --support breast --query new_images --model mobilenetv2_100 --head copa",
    "crossgraft distil runs/breast runs/mine --data breast,my_images --model mobilenetv2_100 --out runs/both",
    "crossgraft audit mobilenetv2_100,resnet18 --data breast --confounder tag --out runs/sweep",
)
"""Look up the network that pages name; other commands run with the smallest one, which takes a quarter of the time."""

SMALL_IMAGES = ("--workers", "1", "--image-size", "32", "--weights-dir", "weights")
IN_LITTLE_TIME = {
    "tune": (*SMALL_IMAGES, "--epochs", "1"),
    "select": (*SMALL_IMAGES, "--epochs", "1"),
    "fewshot": SMALL_IMAGES,
    "distil": (*SMALL_IMAGES, "--steps", "2", "--batch-size", "4"),
    "audit": SMALL_IMAGES,
    "compare": SMALL_IMAGES,
    "interpolate": ("--alphas", "0,0.5,1"),
    "demo": ("--fast",),
    "bench": ("--smoke", "--workers", "1"),
}
"""Flags that the pages leave open; of a flag that is there twice, the last one counts."""

PUBLISHED = "published-tables"
"""Written by docs/generate.py, which evaluates each of its tables when its freshness is tested."""

OF_THE_DEMO = "pypi:efficientnet-lite0"
"""A network of the package index: commands of the demo, which are typed elsewhere, take it all the way."""

TYPED_ELSEWHERE = ("crossgraft demo",)
"""In ``tests/unit/demo/test_story.py``, which looks at what it gives."""

OFFLINE = "which-models-can-i-use"
"""The page of what is found without a zoo: all that there is, which is less in a folder of its own."""


def label(page):
    return str(page.relative_to(REPOSITORY))


def commands(page):
    """Lines that begin with `$ crossgraft` in console blocks, in order."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ crossgraft")]


@pytest.fixture(autouse=True)
def fresh_examples():
    forget_examples(REPOSITORY)
    yield
    forget_examples(REPOSITORY)


@pytest.fixture(scope="module")
def documented(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documented")
    make_documented_workspace(folder, REPOSITORY)
    fill_hub_cache(folder / "hub", folder / "weights")
    forget_examples(REPOSITORY)
    return folder


def of_ranking(page, arguments):
    """Flags that the page leaves open, so that a ranking takes a second: small images, one small network, one score."""
    flags = ["--workers", "1", *([] if "--image-size" in arguments else ["--image-size", "32"])]
    if page.stem != "README" and "--scores" not in arguments:  # the first page shows what the defaults give
        flags += ["--scores", "logme"]
    if "--models" not in arguments and page.stem != OFFLINE:  # that page is about the default
        flags += ["--models", "zoo.yaml", *([] if "--weights-dir" in arguments else ["--weights-dir", "weights"])]
    return flags


def in_little_time(page, command):
    """The arguments of a printed command, with a network, images and flags that make it quick."""
    arguments = shlex.split(command)[1:]
    verb = arguments[0]
    if page.stem == OFFLINE and "--code" not in arguments:  # examples name files of their own
        arguments = ["few_weights" if word == "weights" else word for word in arguments]
    if command not in BY_NAME and verb != "rank":
        arguments = [SMALLEST if word in (NAMED, OF_THE_DEMO) else word for word in arguments]
    if {"--published", "--replay", "--preset", "--average"} & {*arguments}:  # they look results or settings up
        return arguments
    if verb == "rank":
        return [*arguments, *of_ranking(page, arguments)]
    if "centre" in arguments:  # it looks at no image
        return [*arguments, "--image-size", "32", "--weights-dir", "weights"]
    more = [*IN_LITTLE_TIME.get(verb, ())]
    if verb == "tune" and "--seeds" in arguments:
        more += ["--seeds", "2"]
    if verb == "fewshot" and "--support" not in arguments:
        more += ["--episodes", "3"]
    if verb == "select" and "digits" in arguments and "--models" not in arguments:
        more += ["--models", "zoo.yaml"]
    if verb == "audit" and arguments[1].startswith("runs/"):
        more = ["--workers", "1", "--weights-dir", "weights"]  # at the size that it was trained with
    if page.stem == OFFLINE:
        more = ["few_weights" if word == "weights" else word for word in more]
    return [*arguments, *more]


def put_runs_aside(folder):
    if (folder / "runs").exists():
        (folder / "runs").rename(folder / f"runs-{len([*folder.glob('runs-*')])}")


def run_of(page):
    """Pages whose trainings have several processes stand where those are forks, which need not import everything."""
    has_processes = any("--devices 2" in command for command in commands(page))
    return pytest.param(page, id=label(page), marks=[pytest.mark.xdist_group(forked.GROUP)] if has_processes else [])


@pytest.mark.slow
@pytest.mark.parametrize("page", [run_of(page) for page in PAGES if commands(page)])
def test_every_printed_command_runs(page, documented, monkeypatch, capsys):
    from huggingface_hub import constants

    monkeypatch.setattr(launch, "get_context", lambda _: forked.context())
    monkeypatch.setattr(local, "Processes", lambda _: Here())
    leave_out_pages(monkeypatch, of_comparisons=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(documented / "hub"))
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(documented / "cache"))
    monkeypatch.chdir(documented)
    shorten(monkeypatch, Here())
    fewer_digits(monkeypatch)
    leave_out_rounds(monkeypatch)
    put_runs_aside(documented)
    for command in commands(page)[: 1 if page.stem == PUBLISHED else None]:
        if command in TYPED_ELSEWHERE:
            continue
        if page.stem == OFFLINE:  # a ranking loads its networks again for each one of others that it finds in its place
            put_runs_aside(documented)
        arguments = in_little_time(page, command)
        code = main(arguments)
        expected = {FAILS_ON_PURPOSE.get(command, 0), *([EXIT_GATE] if "--fail-on" in arguments else [])}
        assert code in expected, f"{command}\n{capsys.readouterr().err}"  # on noise, a condition may hold


@pytest.mark.slow
@pytest.mark.parametrize("zoo", sorted((REPOSITORY / "examples").glob("*/*.yaml")), ids=lambda path: path.name)
def test_every_entry_of_a_printed_zoo_loads(zoo, documented):
    """The commands above rank three of them."""
    from crossgraft.models import load_backbone, read_zoo

    specs = read_zoo(zoo, weights_dir=documented / "weights", allow_code=zoo.parent)
    assert len(specs) == len(re.findall(r"(?m)^- name: ", zoo.read_text(encoding="utf-8"))) > 0
    assert all(load_backbone(spec, image_size=32).num_features for spec in specs)


BENCHMARKS = sorted((REPOSITORY / "benchmarks").glob("*.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # as where a person starts them
@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda path: path.name)
def test_every_benchmark_runs_small(benchmark, tmp_path, monkeypatch, capsys):
    """In this process, which has imported torch already; those that need a process of their own start it."""
    page = (REPOSITORY / "docs" / "results" / "benchmarks.md").read_text(encoding="utf-8")
    assert f"python benchmarks/{benchmark.name}" in page
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(sys, "argv", [str(benchmark), "--smoke"])
    monkeypatch.syspath_prepend(str(benchmark.parent))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(benchmark), run_name="__main__")
    assert any(character.isdigit() for character in capsys.readouterr().out)


def test_a_wrong_command_would_be_noticed():
    assert main(["rank", "breast", "--no-such-flag"]) == 2


def test_links_between_pages_lead_somewhere():
    pages = [*PAGES, *(REPOSITORY / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    links = [
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    assert len(links) > 10
    assert [f"{label(page)}: {target}" for page, target in links if not (page.parent / target).exists()] == []


def test_every_page_is_reached_from_the_readme():
    reached, open_pages = set(), [REPOSITORY / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in reached or not page.is_file():
            continue
        reached.add(page)
        if page.suffix == ".md":
            targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
            open_pages += [(page.parent / target).resolve() for target in targets if "://" not in target]
    assert [label(page) for page in PAGES if page.resolve() not in reached] == []


def generator():
    spec = importlib.util.spec_from_file_location("generate", REPOSITORY / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_catalogues_are_fresh():
    module = generator()
    stale = [name for name, text in module.pages().items() if (module.FOLDER / name).read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_score_has_a_card_that_says_the_same_five_things():
    from crossgraft.scores import SCORES

    for name, _ in SCORES:
        if SCORES.origin(name) == "crossgraft":
            card = (REPOSITORY / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8").lower()
            for heading in ("idea", "when it helps", "when it misleads", "cost", "source"):
                assert f"**{heading}" in card, f"{name}: no paragraph {heading!r}"
