"""One reading of what cells say: numbers, ids under several spellings, and words for what is not known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.data import dataset_from_arrays
from crossgraft.data.cells import number_in, one_spelling, says_unknown
from crossgraft.data.sources import SourceRows
from crossgraft.errors import DataError

_PADDED = 6
_SPELLINGS = (str, "{}.0".format, "{}.00".format, "{},0".format, f"{{:0{_PADDED}}}".format)


def _same_partition(first, second):
    return all(len({b for a, b in zip(x, y, strict=True) if a == one}) == 1 for x, y in
               ((first, second), (second, first)) for one in set(x))  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 10**_PADDED - 1), st.sampled_from(_SPELLINGS)), min_size=1, max_size=40))
def test_groups_are_those_of_the_numbers_however_each_is_spelled(spelled):
    written = np.asarray([spell(number) for number, spell in spelled])
    merged = one_spelling(written)
    assert _same_partition(merged.values.tolist(), [number for number, _ in spelled])
    assert one_spelling(merged.values).num_merged == 0


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=20))
def test_two_ids_become_one_only_where_they_are_one_number(words):
    values = np.asarray(words)
    merged = one_spelling(values).values.tolist()
    for before, after in zip(values.tolist(), merged, strict=True):
        assert before == after or float(before.replace(",", ".")) == float(after)


@pytest.mark.parametrize(
    "kept_apart", [["03", "003", "3"], ["P3", "P03"], ["1,000", "1"], ["3", "3.5"], ["1e0", "1"], ["３", "3"], ["²", "2"]]
)
def test_a_guess_merges_nothing(kept_apart):
    assert one_spelling(np.asarray(kept_apart)).values.tolist() == kept_apart


@given(st.sampled_from(["nan", "NA", "N/A", "-", "unknown", "?", "", "#N/A", "null", "none", "#REF!", ".", "\\N",
                        "anonymous", "not recorded"]), st.data())  # fmt: skip
def test_words_for_what_is_not_known(word, data):
    spelled = "".join(data.draw(st.sampled_from([letter.lower(), letter.upper()])) for letter in word)
    assert says_unknown(f"  {spelled}\t") and says_unknown(f"\ufeff{spelled}\u200b")


@given(st.floats(-1e6, 1e6), st.integers(1, 6))
def test_a_decimal_comma_is_a_decimal_point(number, digits):
    written = f"{number:.{digits}f}"
    with_comma = written.replace(".", ",")
    assert number_in(with_comma) in (float(written), None)
    assert number_in(with_comma) is not None or with_comma.endswith(",000")


def _rows(groups):
    return SourceRows("x", np.zeros(len(groups), int), [""] * len(groups), lambda row: None, groups=np.asarray(groups),
                      group_column="patient")  # fmt: skip


def test_merged_ids_are_told_without_a_name():
    merged = _rows(["3", "3.0", "003", "P7", "12"]).with_ids_merged()
    assert merged.groups.tolist() == ["003", "003", "003", "P7", "012"]
    (notice,) = merged.notices
    assert notice.startswith("1 group by patient had several spellings") and "3" not in notice


def test_arrays_are_read_as_tables_are(pixels):
    images, labels = [pixels(seed) for seed in range(4)], [0, 1, 0, 1]
    dataset = dataset_from_arrays(images, labels, groups=["3", "3.0", "003", "7"])
    assert dataset.groups.tolist() == ["003", "003", "003", "007"]
    for word in ("NA", None, float("nan"), "unknown", "-", "-1", -1):
        with pytest.raises(DataError, match="The group is missing in row 1"):
            dataset_from_arrays(images, labels, groups=["3", word, "4", "7"])
