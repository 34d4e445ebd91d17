import pytest

from crossgraft.choice import choose
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.registry import Registry
from crossgraft.tune.regularizers import Regularizer


@pytest.fixture
def fruits():
    registry = Registry("fruit", group="crossgraft.no_such_group", plugin_type=str)
    registry.add("apple", "red")
    return registry


def test_lookup_and_listing(fruits):
    assert fruits.get("apple") == "red"
    assert fruits.names() == ["apple"]
    assert "apple" in fruits and "pear" not in fruits
    assert fruits.origin("apple") == "crossgraft"


def test_a_typo_is_answered_with_the_nearest_name(fruits):
    with pytest.raises(UnknownNameError, match=r"Unknown fruit: aple\. Did you mean apple\?"):
        fruits.get("aple")


def test_a_name_is_taken_once_and_types_are_checked(fruits):
    with pytest.raises(UsageError, match="already registered by crossgraft"):
        fruits.add("apple", "green", origin="orchard")
    with pytest.raises(UsageError, match="from orchard is a int, expected str"):
        fruits.add("pear", 3, origin="orchard")


def test_a_plug_in_is_found_in_the_room_that_was_named_and_in_others_without_it():
    registry = Registry("kind of report", group="crossgraft.no_such_group", plugin_type=object, rooms="page:REPORT")
    in_its_room = registry.find("data_check", room="check")
    assert in_its_room is not None
    for room in ("", "rank", "no such room", "../check"):
        assert registry.find("data_check", room=room) is in_its_room
    assert registry.get("data_check", room="check") is in_its_room
    assert registry.find("no such kind", room="check") is None


@pytest.mark.parametrize(
    ("brought", "why"),
    [
        ("plum = orchard_of_nobody:PLUM", "orchard brings it, and cannot be imported"),
        ("plum = math:pi", "fruit plum from orchard is a float, expected str"),
        ("apple = string:digits", "fruit apple from orchard is already registered by crossgraft"),
    ],
)
def test_a_package_that_cannot_be_used_takes_nothing_else_away(brought, why, monkeypatch, tmp_path):
    facts = tmp_path / "orchard-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[crossgraft.no_such_group]\n{brought}\npear = string:ascii_letters\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("fruit", group="crossgraft.no_such_group", plugin_type=str)
    registry.add("apple", "red")
    name = brought.partition(" ")[0]
    with pytest.warns(UserWarning, match=f"fruit {name} is left out: .*{why}.* Mend or uninstall orchard"):
        assert registry.names() == ["apple", "pear"]
    assert registry.get("apple") == "red"
    if name != "apple":
        with pytest.raises(UsageError, match=f"fruit {name} cannot be used: .*{why}"):
            registry.get(name)


def test_a_class_that_lacks_a_member_is_refused_by_its_name():
    class Bare(Regularizer):
        """Says no loss."""

    registry = Registry("regulariser", group="none", plugin_type=type)
    registry.add("bare", Bare)
    with pytest.raises(UsageError, match="The regulariser bare lacks loss, without which it cannot be made"):
        choose(registry, "bare")
