"""What tells two heads of one name apart in the key of a run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from crossgraft.fewshot import CopaHead, NccHead, TipAdapterHead
from crossgraft.fewshot.episode_work import identity_of_head


def manhattan(one, other):
    """A metric of one's own."""
    return np.abs(one - other).sum()


def metric(power):
    return lambda one, other: (np.abs(one - other) ** power).sum()


class Opaque:
    """Nothing tells two of them apart."""

    def __reduce__(self):
        raise TypeError("not to be pickled")


ARRAY = np.arange(6.0).reshape(2, 3)
PAIRS = {
    "class": (NccHead(), CopaHead()),
    "number": (LogisticRegression(C=1.0), LogisticRegression(C=1e-4)),
    "array": (TipAdapterHead(class_weights=ARRAY), TipAdapterHead(class_weights=ARRAY + 1)),
    "shape": (TipAdapterHead(class_weights=ARRAY), TipAdapterHead(class_weights=ARRAY.T.copy())),
    "mapping": (TipAdapterHead(class_weights={"a": ARRAY[0]}), TipAdapterHead(class_weights={"b": ARRAY[0]})),
    "nested": tuple(make_pipeline(StandardScaler(), LogisticRegression(C=C)) for C in (1.0, 2.0)),
    "function": (KNeighborsClassifier(metric=manhattan), KNeighborsClassifier(metric=np.linalg.norm)),
    "lambda": (KNeighborsClassifier(metric=lambda a, b: (a - b).max()), KNeighborsClassifier(metric=lambda a, b: (a - b).min())),
    "constant": (KNeighborsClassifier(metric=lambda a, b: 1 * a[0]), KNeighborsClassifier(metric=lambda a, b: 2 * a[0])),
    "closure": (KNeighborsClassifier(metric=metric(1)), KNeighborsClassifier(metric=metric(2))),
    "parameter": tuple(TipAdapterHead(class_weights={"a": nn.Parameter(value * torch.ones(2))}) for value in (1, 2)),
    "bfloat16": tuple(TipAdapterHead(class_weights={"a": torch.full((2,), value).bfloat16()}) for value in (1.0, 2.0)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_other_options_are_another_identity(pair):
    one, other = (json.dumps(identity_of_head(head)) for head in pair)
    assert one != other
    assert json.dumps(identity_of_head(pair[0])) == one


def test_functions_made_twice_are_one():
    assert identity_of_head(KNeighborsClassifier(metric=metric(2))) == identity_of_head(KNeighborsClassifier(metric=metric(2)))


def test_a_function_that_holds_itself_has_an_identity():
    def recursive(one, other):
        return recursive(one[1:], other[1:]) if len(one) else 0

    assert json.dumps(identity_of_head(KNeighborsClassifier(metric=recursive)))


def test_what_has_no_content_is_never_taken_for_another():
    head = KNeighborsClassifier(metric_params=Opaque())
    assert identity_of_head(head) != identity_of_head(head)


@pytest.mark.parametrize("named", [str, Path])
def test_a_file_that_changed_is_another_one(tmp_path, named):
    file = tmp_path / "weights.npz"
    head = TipAdapterHead(class_weights=named(file))
    file.write_bytes(b"one")
    first = identity_of_head(head)
    assert identity_of_head(head) == first
    file.write_bytes(b"two")
    assert identity_of_head(head) != first
