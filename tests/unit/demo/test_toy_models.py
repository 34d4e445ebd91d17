import pytest
import torch

from crossgraft.demo.toy_models import PREPROCESSING, TOY_MODELS
from crossgraft.models import ModelSpec, load_backbone, random_weights_control

FACTORIES = sorted(TOY_MODELS)


def spec(factory, num_classes=4):
    return ModelSpec(name=factory, source=f"crossgraft.demo.toy_models:{factory}", kwargs={"num_classes": num_classes})


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_zoo_can_name_it_as_a_factory(factory):
    backbone = load_backbone(spec(factory))
    assert backbone.preprocessing == PREPROCESSING
    assert backbone.num_source_classes == 4
    assert backbone.num_features == backbone.module.num_features
    features, logits = backbone(torch.rand(3, 1, 8, 8))
    torch.testing.assert_close(backbone.module.get_classifier()(features), logits)


@pytest.mark.parametrize("factory", FACTORIES)
def test_pooled_features_are_what_the_backbone_shows(factory):
    module, images = TOY_MODELS[factory](num_classes=3).eval(), torch.rand(2, 1, 8, 8)
    backbone = load_backbone(spec(factory))
    head = {name: value for name, value in backbone.module.state_dict().items() if name.startswith("fc.")}
    backbone.module.load_state_dict(module.state_dict() | head)
    with torch.inference_mode():
        pooled = module.forward_head(module.forward_features(images), pre_logits=True)
    torch.testing.assert_close(backbone(images).features, pooled)


@pytest.mark.parametrize("factory", FACTORIES)
def test_one_random_control_stands_for_all_numbers_of_source_classes(factory):
    controls = [random_weights_control(spec(factory, num_classes)) for num_classes in (2, 5)]
    assert controls[0].architecture_key == controls[1].architecture_key
    first, second = (load_backbone(controls[0], seed=seed) for seed in (0, 1))
    assert first.weights_fingerprint != second.weights_fingerprint


@pytest.mark.parametrize("factory", FACTORIES)
def test_it_tells_an_image_from_its_half_turn(factory):
    module = TOY_MODELS[factory](num_classes=3).eval()
    image = torch.zeros(1, 1, 8, 8)
    image[..., :4, :4] = 1
    with torch.inference_mode():
        moved = module(image.flip(2, 3))
        assert not torch.allclose(module(image), moved, atol=1e-6)


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_new_head_replaces_only_the_head(factory):
    module = TOY_MODELS[factory](num_classes=3).eval()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    module.reset_classifier(5)
    after = module.state_dict()
    assert module.num_classes == 5
    assert module(torch.rand(2, 1, 8, 8)).shape == (2, 5)
    changed = {name for name in after if before[name].shape != after[name].shape}
    assert changed == {"fc.weight", "fc.bias"}
    assert all(torch.equal(before[name], after[name]) for name in after if name not in changed)


@pytest.mark.parametrize("factory", FACTORIES)
def test_without_classes_there_is_no_head(factory):
    module = TOY_MODELS[factory]()
    assert module(torch.rand(2, 1, 8, 8)).shape == (2, module.num_features)


@pytest.mark.parametrize("factory", FACTORIES)
def test_it_is_a_toy(factory):
    assert sum(parameter.numel() for parameter in TOY_MODELS[factory](num_classes=5).parameters()) < 80_000
