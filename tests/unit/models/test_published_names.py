"""The table of names: each leads to a form that can be read, and arguments of the card make the network that it describes."""

import pytest
import timm
import torch

from crossgraft.models import ModelSpec, list_available_models, read_zoo, zoo
from crossgraft.models.published_names import licence_in_words, published_names, terms_in_words
from crossgraft.models.sources.architecture_arguments import refuse_other_arguments
from crossgraft.models.sources.libraries import LIBRARIES, library_of
from crossgraft.models.sources.timm_models import with_layers
from crossgraft.models.spec import OWN_LIBRARIES, library_name

ON_THE_CARD = {"uni": ("vit_large_patch16_224", 303), "uni2": ("vit_giant_patch14_224", 681)}
"""Architecture and millions of parameters without a head, as published."""


@pytest.mark.parametrize("known", published_names().values(), ids=lambda known: known.name)
def test_each_name_leads_to_a_network_that_its_library_knows(known):
    assert library_name(known.source) in LIBRARIES.names()
    assert library_of(known.source).knows(known.source)
    assert known.commercial in ("yes", "no", "on its terms") and known.licence
    assert known.licence_from and known.tried
    refuse_other_arguments(known.arguments, where=known.name)
    if library_name(known.source) == "timm":
        library_of(known.source).check(known.source)
        assert known.licence == library_of(known.source).describe(known.source, {})["license"]


def test_the_words_of_libraries_are_those_that_come_with_the_package():
    assert [name for name, _ in LIBRARIES if LIBRARIES.origin(name) == "crossgraft"] == list(OWN_LIBRARIES)


def test_what_was_tried_is_said_as_it_can_have_been():
    """Nobody has the weights of the hub here, and where a config is on the hub, nobody knows the architecture."""
    said = {known.name: (library_name(known.source), known.tried) for known in published_names().values()}
    assert len({known.source for known in published_names().values()}) >= 30
    of_timm = ("random weights", "its architecture, without a pass")
    for name, (library, tried) in said.items():
        allowed = {"timm": of_timm, "pypi": ("its weights",), "hf-hub": ("a small network of timm", of_timm[1])}.get(library)
        assert tried in allowed if allowed else tried.startswith("a small "), name
    assert {name for name, (library, tried) in said.items() if library == "hf-hub" and tried == of_timm[1]} == set(ON_THE_CARD)


@pytest.mark.parametrize(
    "name", [each.name for each in published_names().values() if each.tried == "its architecture, without a pass"]
)
def test_an_architecture_that_was_not_run_is_built(name):
    if name in ON_THE_CARD:
        return
    with torch.device("meta"):
        assert sum(p.numel() for p in timm.create_model(published_names()[name].source.partition(".")[0]).parameters()) > 10**8


@pytest.mark.parametrize("name", ON_THE_CARD)
def test_arguments_make_the_network_of_the_card(name):
    architecture, millions = ON_THE_CARD[name]
    arguments = {"num_classes": 0, **published_names()[name].arguments}
    with torch.device("meta"):
        network = timm.create_model(architecture, **with_layers(arguments))
    assert sum(parameter.numel() for parameter in network.parameters()) // 10**6 == millions


def test_a_name_is_read_as_what_it_stands_for():
    (spec,) = read_zoo(["dinov3-small"])
    assert (spec.name, spec.source, spec.licence) == ("dinov3-small", "vit_small_patch16_dinov3.lvd1689m", "dinov3-license")


def test_arguments_of_the_card_go_with_the_name(monkeypatch):
    monkeypatch.setattr(zoo, "resolve_spec", lambda spec, **_: spec)  # what the hub says is not here
    (spec,) = read_zoo(["uni"])
    assert (spec.source, spec.kwargs) == ("hf-hub:MahmoodLab/UNI", {"init_values": 1e-5, "dynamic_img_size": True})


def test_terms_are_known_before_anything_is_fetched():
    words = terms_in_words("hf-hub:MahmoodLab/UNI2-h") or ""
    assert "not for commercial use" in words and "accepted" in words
    assert terms_in_words("resnet18") is None


def test_what_a_licence_forbids_is_said_in_words():
    assert licence_in_words("cc-by-nc-nd-4.0", "mine") == "cc-by-nc-nd-4.0: not for commercial use"
    assert licence_in_words("owkin-non-commercial", "phikon") == "owkin-non-commercial: not for commercial use"
    assert licence_in_words("dinov3-license", "mine").startswith("dinov3-license: has terms of its own")
    assert licence_in_words("mit", "rad-dino").startswith("mit: has terms of its own")
    assert licence_in_words("mit", "mine") == "mit" and licence_in_words("science", "mine") == "science"
    assert licence_in_words("my nc terms", "mine").endswith("not for commercial use")


def test_a_search_looks_into_every_library():
    names = {row.name: row for row in list_available_models(search="patholog")}
    assert {"uni", "virchow2"} <= names.keys() and not any(row.available for row in names.values())
    found = [row.name for row in list_available_models(search="RESNET18")]
    assert "resnet18.a1_in1k" in found and "torchvision:resnet18.IMAGENET1K_V1" in found


def test_a_repository_without_the_word_of_its_library():
    from crossgraft.errors import UnknownNameError

    with pytest.raises(UnknownNameError, match=r"hf-hub:ward/lesions.*transformers:ward/lesions"):
        read_zoo([ModelSpec(name="x", source="ward/lesions")])
