"""Mean and covariance: in one pass, and of batches in any number type."""

import pytest
import torch

from crossgraft.tune.regularizers._moment_terms import moments_of_all, moments_of_batch
from support.regularizing import context_of
from support.small_classifiers import small_classifier


def rows(count=50, size=7, dtype=torch.float64):
    return torch.randn(count, size, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("sizes", [[50], [20, 20, 10], [1, 49]])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_one_pass_gives_mean_and_covariance_of_all_rows(sizes, shift):
    """With a mean of a million, sums that are not shifted would keep 4 digits of 16."""
    given = rows() + shift
    found = moments_of_all(given.split(sizes))
    torch.testing.assert_close(found.mean, given.mean(0), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(found.covariance, given.T.cov(), rtol=0, atol=1e-9 if shift else 1e-13)


def test_single_precision_is_summed_in_double():
    given = rows(3000, 3, torch.float32)
    found = moments_of_all(given.split(64))
    assert found.covariance.dtype == torch.float64
    torch.testing.assert_close(found.covariance, given.double().T.cov(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("batches", [[], [rows(1)]])
def test_of_fewer_than_two_rows_there_is_no_covariance(batches):
    assert moments_of_all(batches).covariance.isnan().all()


@pytest.mark.parametrize(
    ("given", "computed"), [(torch.float64, torch.float64), (torch.float32,) * 2, (torch.bfloat16, torch.float32)]
)
@pytest.mark.parametrize("count", [4, 20], ids=["fewer images than features", "more images than features"])
def test_a_batch_is_never_summed_in_half_precision(given, computed, count):
    features = (rows(count) + 3).to(given)
    context = context_of(small_classifier("cnn"), features=features)
    found = moments_of_batch(context, features)
    assert found.covariance.dtype == found.mean.dtype == computed
    torch.testing.assert_close(found.covariance, features.to(computed).T.cov(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.mean, features.to(computed).mean(0), rtol=1e-5, atol=1e-5)


def test_what_a_process_without_a_share_looks_at_does_not_count():
    features = rows(20)
    mean = features.mean(0)
    of_others = iter([features.sum(0), (features - mean).T @ (features - mean)])
    context = context_of(
        small_classifier("cnn"),
        features=features[:1] + 100,
        num_processes=2,
        num_images=0,
        num_images_of_all=20,
        sum_over_processes=lambda mine: mine + next(of_others),
    )
    found = moments_of_batch(context, context.features)
    torch.testing.assert_close(found.mean, mean)
    torch.testing.assert_close(found.covariance, features.T.cov())
