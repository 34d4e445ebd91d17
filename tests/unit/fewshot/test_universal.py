"""URL's universal backbone: the loss is the printed one, a stopped training ends as a whole one, and nothing else changes."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.distil import DistillationSettings, Domain, distil_domains
from crossgraft.distil.domains import new_head
from crossgraft.errors import DataError, DivergedError, OtherRunError, UsageError
from crossgraft.fewshot import UrlHead
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.models.classifier import make_classifier
from crossgraft.similarity import batch_rbf_cka

QUICK = DistillationSettings(steps=6, batch_size=6, checkpoint_every=2)


def small(seed):
    return load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32, seed=seed)


def images(name, classes, size):
    """Classes differ in brightness."""
    random = np.random.default_rng(len(name))
    labels = np.arange(size) % classes
    pixels = random.integers(0, 60, (size, 32, 32, 3)) + (labels * 180 // classes)[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), labels, name=name)


@pytest.fixture(scope="module")
def domains():
    found = []
    for seed, (name, classes, size) in enumerate([("first", 2, 24), ("second", 3, 15)], start=1):
        data = images(name, classes, size)
        found.append(Domain(name, data, make_classifier(small(seed), classes, seed=seed)))
    return found


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(4, 9), st.integers(1, 5), st.integers(1, 5))
def test_cka_with_a_gaussian_kernel_is_the_equation(seed, n, width, other):
    """Every sum written out."""
    random = np.random.default_rng(seed)
    x, y = random.standard_normal((n, width)), random.standard_normal((n, other))

    def centred(rows):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        squared = np.array([[((a - b) ** 2).sum() for b in unit] for a in unit])
        apart = np.sort(squared[(squared > 0) & ~np.eye(n, dtype=bool)])
        width = apart[(len(apart) - 1) // 2] if len(apart) else 1.0  # of an even number torch takes the lower one
        kernel = np.exp(-squared / (2 * width))
        h = np.eye(n) - 1 / n
        return h @ kernel @ h

    if min(width, other) == 1:
        return  # unit vectors of width 1 are ±1: distances are 0 or 4, and rounding decides which are apart
    k, other_k = centred(x), centred(y)
    expected = np.trace(k @ other_k) / np.sqrt(np.trace(k @ k) * np.trace(other_k @ other_k))
    found = batch_rbf_cka(torch.from_numpy(x), torch.from_numpy(y))
    assert float(found) == pytest.approx(expected, abs=1e-6)
    assert float(batch_rbf_cka(torch.from_numpy(x), torch.from_numpy(3 * x))) == pytest.approx(1)


def test_the_gradient_of_cka_takes_widths_as_numbers():
    """As in the authors' code: central differences of the equation whose widths stay those of the point."""
    random = np.random.default_rng(0)
    x, y = random.standard_normal((6, 3)), random.standard_normal((6, 4))

    def distances(rows):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return ((unit[:, None] - unit[None]) ** 2).sum(-1)

    widths = [np.sort(distances(rows)[~np.eye(6, dtype=bool)])[14] for rows in (x, y)]
    h = np.eye(6) - 1 / 6

    def literal(moved):
        k, other = (h @ np.exp(-distances(rows) / (2 * width)) @ h for rows, width in zip((moved, y), widths, strict=True))
        return np.trace(k @ other) / np.sqrt(np.trace(k @ k) * np.trace(other @ other))

    point = torch.from_numpy(x).requires_grad_()
    batch_rbf_cka(point, torch.from_numpy(y)).backward()
    steps = 1e-6 * np.eye(18).reshape(18, 6, 3)
    expected = [(literal(x + step) - literal(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(point.grad.reshape(-1).numpy(), expected, atol=1e-8)


def test_the_terms_of_the_first_step_are_the_printed_ones(domains):
    """A batch is all images of both domains, so that their order does not matter."""
    student, told = small(0), []
    pair = [domains[1], domains[1]._replace(name="third", dataset=images("others", 3, 15))]
    distil_domains(student, pair, DistillationSettings(steps=1, batch_size=15, temperature=2.0), on_step=told.append)
    inputs = [prepare_batch([domain.dataset.read(row) for row in range(15)], student.preprocessing) for domain in pair]
    copied = student.around(copy.deepcopy(student.module).train())
    with torch.no_grad():
        features = copied.read_out(torch.cat(inputs)).features.split(15)
    for domain, own, of_domain in zip(pair, features, inputs, strict=True):
        with torch.no_grad():
            known, answered = domain.teacher.features_and_logits(of_domain)  # both have the same preprocessing
        targets = torch.from_numpy(domain.dataset.targets)
        logits = new_head(student.num_features, 3, 0, domain.name)(own).detach()
        shares, others = (each.div(2.0).softmax(dim=1) for each in (answered, logits))
        divergence = (shares * (shares.log() - others.log())).sum(dim=1).mean()
        entropy = -logits.softmax(dim=1)[torch.arange(15), targets].log().mean()
        assert told[0].cross_entropy[domain.name] == pytest.approx(float(entropy), rel=1e-4)
        assert told[0].divergence[domain.name] == pytest.approx(float(divergence), rel=1e-3)
        assert told[0].dissimilarity[domain.name] == pytest.approx(float(1 - batch_rbf_cka(own, known)), rel=1e-3)


def test_a_stopped_training_ends_as_a_whole_one(domains, tmp_path):
    whole = distil_domains(small(0), domains, QUICK)

    def stop(step):
        if step.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distil_domains(small(0), domains, QUICK, checkpoint_folder=tmp_path, on_step=stop)
    steps = []
    resumed = distil_domains(small(0), domains, QUICK, checkpoint_folder=tmp_path, on_step=lambda step: steps.append(step.step))
    assert steps == [5, 6] and resumed.history == whole.history
    state = whole.backbone.module.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in resumed.backbone.module.state_dict().items())
    assert all(torch.equal(head.weight, whole.heads[name].weight) for name, head in resumed.heads.items())
    other_teacher = [domains[0], domains[1]._replace(teacher=make_classifier(small(9), 3, seed=9))]
    for student, pair in ((small(1), domains), (small(0), other_teacher)):
        with pytest.raises(OtherRunError):
            distil_domains(student, pair, QUICK, checkpoint_folder=tmp_path)


def dropping(seed):
    """A network that draws random numbers while it is trained."""
    kwargs = {"drop_path_rate": 0.5, "drop_rate": 0.3}
    return load_backbone(ModelSpec("vit", "test_vit", weights="random", kwargs=kwargs), image_size=32, seed=seed)


def test_dropout_draws_the_same_numbers_resumed_or_not(domains, tmp_path):
    state = torch.random.get_rng_state()
    whole = distil_domains(dropping(0), domains, QUICK)
    assert torch.equal(torch.random.get_rng_state(), state)  # the global stream is nobody's business

    def stop(step):
        if step.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        distil_domains(dropping(0), domains, QUICK, checkpoint_folder=tmp_path, on_step=stop)
    torch.manual_seed(7)
    resumed = distil_domains(dropping(0), domains, QUICK, checkpoint_folder=tmp_path)
    for name, value in resumed.backbone.module.state_dict().items():
        assert torch.equal(value, whole.backbone.module.state_dict()[name]), name
    other = distil_domains(dropping(0), domains, dataclasses.replace(QUICK, seed=1))
    assert other.history != whole.history


def test_equal_features_have_no_similarity_and_no_gradient():
    x = torch.ones(5, 3, requires_grad=True)
    batch_rbf_cka(x, torch.randn(5, 4)).backward()
    assert torch.isfinite(x.grad).all()


def test_weights_that_are_not_finite_are_not_kept(domains, tmp_path):
    with pytest.raises(DivergedError):
        distil_domains(small(0), domains, dataclasses.replace(QUICK, learning_rate=1e30), checkpoint_folder=tmp_path)
    assert not list(tmp_path.glob("*.safetensors"))


def test_another_preprocessing_is_another_run(domains, tmp_path):
    distil_domains(small(0), domains, QUICK, checkpoint_folder=tmp_path)
    larger = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=48, seed=0)
    with pytest.raises(OtherRunError):
        distil_domains(larger, domains, QUICK, checkpoint_folder=tmp_path)


def test_names_of_domains_are_free(domains, tmp_path):
    """A point is no part of a name of parameters, and one name may begin like another."""
    named = [domain._replace(name=name) for domain, name in zip(domains, ("runs/a.1", "runs/a.1.2"), strict=True)]
    found = distil_domains(small(0), named, QUICK, checkpoint_folder=tmp_path)
    assert found.heads.keys() == {"runs/a.1", "runs/a.1.2"}
    again = distil_domains(small(0), named, QUICK, checkpoint_folder=tmp_path)
    assert torch.equal(again.heads["runs/a.1.2"].weight, found.heads["runs/a.1.2"].weight)


def test_it_learns_and_leaves_everything_else_as_it_was(domains, tmp_path):
    student = small(0)
    before = {name: value.clone() for name, value in student.module.state_dict().items()}
    teacher = {name: value.clone() for name, value in domains[0].teacher.state_dict().items()}
    longer = DistillationSettings(steps=40, batch_size=12, learning_rate=0.01)
    found = distil_domains(student, domains, longer)
    first, last = found.history[0], found.history[-1]
    assert last.cross_entropy["first"] < 0.5 * first.cross_entropy["first"]
    assert all(torch.equal(value, before[name]) for name, value in student.module.state_dict().items())
    assert all(torch.equal(value, teacher[name]) for name, value in domains[0].teacher.state_dict().items())
    assert found.backbone.weights_fingerprint != student.weights_fingerprint and not found.backbone.module.training
    data = domains[0].dataset
    features = found.backbone(prepare_batch([data.read(row) for row in range(24)], student.preprocessing)).features
    assert UrlHead(steps=2).fit(features.numpy(), data.targets).predict(features.numpy()).shape == (24,)
    file = found.save(tmp_path / "universal.safetensors")
    (spec,) = read_zoo(str(file))  # as --model names it: the file says all the rest
    again = load_backbone(spec)
    assert again.weights_fingerprint == found.backbone.weights_fingerprint
    assert again.preprocessing == student.preprocessing
    with pytest.raises(UsageError, match="holds a distilled network already"):
        found.save(file)
    content = found.save(file, overwrite=True).read_bytes()
    save_file(load_file(file), file)  # weights of somebody else
    theirs = file.read_bytes()
    with pytest.raises(UsageError, match="is not a distilled network of crossgraft"):
        found.save(file, overwrite=True)
    assert file.read_bytes() == theirs != content


def test_bad_input(domains):
    data = domains[0].dataset
    pixels, labels = [data.read(row) for row in range(24)], np.eye(2, dtype=int)[data.targets]
    several = domains[0]._replace(dataset=dataset_from_arrays(pixels, labels, class_names=["0", "1"], name="first"))
    wrong = [
        (domains[:1], QUICK, UsageError, "at least two domains"),
        ([domains[0], domains[0]], QUICK, UsageError, "names of their own"),
        (domains, DistillationSettings(batch_size=20), DataError, "second has 15 images, fewer than a batch of 20"),
        (domains, DistillationSettings(steps=0), UsageError, "steps of a distillation"),
        (domains, DistillationSettings(steps="a"), UsageError, "steps of a distillation must be a whole number"),
        (domains, DistillationSettings(batch_size=4.5), UsageError, "batch_size of a distillation must be a whole number"),
        (domains, DistillationSettings(temperature=0), UsageError, "temperature of a distillation"),
        (domains, DistillationSettings(weight_decay=-1), UsageError, "weight_decay of a distillation"),
        (domains, DistillationSettings(largest_weight=float("nan")), UsageError, "largest_weight of a distillation"),
        ([several, domains[1]], QUICK, DataError, "first may have several labels"),
        ([domains[0], domains[1]._replace(teacher=domains[0].teacher)], QUICK, DataError, "has 3 classes, and its teacher 2"),
    ]
    for given_domains, chosen, error, said in wrong:
        with pytest.raises(error, match=said):
            distil_domains(small(0), given_domains, chosen)
