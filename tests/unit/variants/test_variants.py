import pytest
from hypothesis import given
from hypothesis import settings as of_hypothesis
from hypothesis import strategies as st

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.variants.variant import read_variants

STRENGTHS = st.floats(1e-6, 1e6, allow_nan=False).map(lambda value: f"{value:.6g}")


def settings(text):
    return {each.name: (each.settings["method"], each.settings["regularizer"]) for each in read_variants(text)}


def test_a_method_stands_alone_and_a_regulariser_is_added_to_full():
    assert settings("linear,l2_sp:0.1,partial:3+l2_sp") == {
        "linear": ("linear", ()),
        "l2_sp:0.1": ("full", ("l2_sp:0.1",)),
        "partial:3+l2_sp": ("partial:3", ("l2_sp",)),
    }


def test_options_stay_with_their_plugin():
    assert settings("l2_sp:alpha=0.1,beta=0.2,full")["l2_sp:alpha=0.1,beta=0.2"] == ("full", ("l2_sp:alpha=0.1,beta=0.2",))


@of_hypothesis(deadline=None)  # the first look-up reads entry points
@given(st.lists(STRENGTHS, min_size=2, max_size=5, unique_by=float))
def test_a_number_repeats_the_plugin_before_it(strengths):
    text = "full,l2_sp:" + ",".join(strengths)
    found = read_variants(text)
    assert [each.name for each in found] == ["full", *(f"l2_sp:{value}" for value in strengths)]
    assert [each.strength for each in found[1:]] == [float(value) for value in strengths]
    assert len({each.sweep for each in found[1:]}) == 1
    assert (found[0].sweep, found[0].strength) == (None, None)


def test_a_repeated_plugin_keeps_its_other_options_and_its_method():
    assert list(settings("partial:2+l2_sp:0.1,beta=0.5,0.2")) == ["partial:2+l2_sp:0.1,beta=0.5", "partial:2+l2_sp:0.2,beta=0.5"]
    assert list(settings("l2_sp:alpha=0.1,beta=0.5,0.2"))[1] == "l2_sp:0.2,beta=0.5"


def test_the_plus_of_a_number_joins_nothing():
    assert settings("full,l2_sp:1e+2")["l2_sp:1e+2"] == ("full", ("l2_sp:1e+2",))


def test_variants_that_differ_in_more_than_one_strength_are_no_sweep():
    found = read_variants("l2_sp:alpha=0.1,beta=0.5,l2_sp:alpha=0.2,beta=0.7,partial:1,partial:2+l2_sp:0.3")
    assert {each.sweep for each in found} == {None}


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("ful,linear", UnknownNameError, "Did you mean full?"),
        ("full", UsageError, "at least two"),
        ("full,full", UsageError, "full is given twice"),
        ("l2_sp,l2_sp:0.01", UsageError, "l2_sp and l2_sp:0.01 are the same"),
        ("0.3,full", UsageError, "no plug-in before 0.3"),
        ("full,,linear", UsageError, "a name is missing"),
        (" ", UsageError, "--compare is empty"),
        ("full+linear,full", UsageError, "both methods"),
        ("full,linear:3", UsageError, "no options"),
        ("full,l2_sp:nix=3", UnknownNameError, "option of l2_sp"),
        ("full,nix.yaml", UsageError, "no such file"),
    ],
)
def test_what_is_wrong_is_said(text, kind, said):
    with pytest.raises(kind, match=said):
        read_variants(text)


def test_a_run_is_no_variant(tmp_path):
    tmp_path = tmp_path / "a run"
    tmp_path.mkdir()
    with pytest.raises(UsageError, match=rf"crossgraft compare '{tmp_path}' OTHER_RUN --data DATA"):
        read_variants(f"full,{tmp_path}")


@pytest.mark.parametrize(
    ("entry", "kind", "said"),
    [
        ({"batch_size": 4}, UsageError, "has no name"),
        ({"name": "a", "batch_sze": 4}, UnknownNameError, "Did you mean batch_size.*variant a"),
        ({"name": "a", "seed": 4}, UsageError, "the same for all variants"),
        ({"name": "a", "batch_size": "four"}, UsageError, "variant a: batch_size must be a whole number"),
        ({"name": "a", "regularizer": "l2_spp"}, UnknownNameError, "l2_sp"),
        ({"name": "full", "batch_size": 4}, UsageError, "full is given twice"),
    ],
)
def test_what_is_wrong_with_a_mapping_is_said(entry, kind, said):
    with pytest.raises(kind, match=said):
        read_variants(["full", entry])


def test_a_file_may_set_whatever_fine_tune_takes(tmp_path):
    (tmp_path / "a.yaml").write_text("- {name: small, batch-size: 4}\n- {name: both, regularizer: [l2_sp], epochs: 3}\n")
    found = read_variants(["full", tmp_path / "a.yaml"])
    assert [each.name for each in found] == ["full", "small", "both"]
    assert found[1].settings == {"batch_size": 4, "method": "full", "regularizer": ()}
    assert found[2].settings["regularizer"] == ("l2_sp",)
    assert [each.is_full for each in found] == [True, False, False]


@pytest.mark.parametrize("content", ["", "name: a\n", "- a\n", "- {name: a\n"])
def test_a_file_that_is_no_list_of_mappings_is_refused(tmp_path, content):
    (tmp_path / "a.yaml").write_text(content)
    with pytest.raises(UsageError, match=r"a\.yaml"):
        read_variants(f"full,{tmp_path / 'a.yaml'}")


def test_a_variant_says_which_form_its_regularisers_take():
    forms = {
        each.name: each.form for each in read_variants("full,repsim,l2_sp+repsim:preset=paper,repsim:mode=procrustes+repsim")
    }
    assert forms == {
        "full": None,
        "repsim": "CKA form",
        "l2_sp+repsim:preset=paper": "eq. 13–14",
        "repsim:mode=procrustes+repsim": "Procrustes form + CKA form",
    }


def test_objectives_and_feature_transforms_are_named_like_regularisers():
    full, irm, strong, both, mixing, mapped = read_variants(
        [
            "full,irm:1,10,irm+rho_sim:0.1,partial:2+mixstyle",
            {"name": "mine", "objective": "vrex", "feature_transform": "mixstyle"},
        ]
    )
    assert full.is_full and full.settings == {"method": "full", "regularizer": ()}
    assert irm.settings == {"method": "full", "regularizer": (), "objective": "irm:1"} and not irm.is_full
    assert (irm.strength, strong.strength) == (1.0, 10.0) and irm.sweep == strong.sweep is not None
    assert [each.name for each in both.plugins] == ["full", "irm", "rho_sim"]
    assert mixing.settings == {"method": "partial:2", "regularizer": (), "feature_transform": ("mixstyle",)}
    assert [each.name for each in mapped.plugins] == ["full", "vrex", "mixstyle"] and mapped.further == {}


def test_the_plain_mean_is_what_full_minimises_and_two_objectives_are_one_too_many():
    assert read_variants("erm,irm")[0].is_full
    with pytest.raises(UsageError, match="full and erm are the same fine-tuning"):
        read_variants("full,erm")
    with pytest.raises(UsageError, match="irm and vrex are both objectives"):
        read_variants("irm+vrex,full")
