import pytest

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.registry import Registry


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
