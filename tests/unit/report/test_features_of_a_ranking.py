"""What a ranking shows of features: kinds of networks, maps, spreads, and ITM's loss; nothing where nobody asked."""

import csv
import io
from urllib.parse import unquote

import pytest
from scipy.stats import weightedtau

from crossgraft.rank.page_features import features_section, kinds_section
from crossgraft.rank.record import (
    FeatureSpread,
    FeaturesRecord,
    ItmByWeight,
    ItmWay,
    MappedModel,
    MappedPanel,
    NetworkKind,
    ProjectedFeatures,
)
from crossgraft.report.blocks import Figure, Folded, Paragraph
from support.few_figures import leave_out_drawings


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    leave_out_drawings(monkeypatch)


def rows_of(table):
    return list(csv.DictReader(io.StringIO(unquote(table.csv_uri.partition(",")[2]))))


def tables_of(section):
    return {table.file_name: rows_of(table) for block in section.blocks if isinstance(block, Folded) for table in block.blocks}


@pytest.fixture
def asked(ranking):
    """The example ranking with features: the networks of every second model are transformers."""
    names = [row.model for row in ranking.ranking(ranking.primary_score).rows if row.role == "candidate"]
    panel = MappedPanel(
        title="Features", points=[(0.0, 1.0), (1.0, 0.5)], shares=(0.7, 0.2), fitted_share=0.9, held_out_share=0.5
    )
    projected = ProjectedFeatures(num_images=10, num_fitted=8, classes=[0, 1], held_out=[1], panels=[panel])
    moved = panel.model_copy(update={"title": "E", "accuracy": 0.75})
    features = FeaturesRecord(
        seed=0,
        spreads=[FeatureSpread(model=name, mean=0.5, standard_deviation=1.0, dispersion=0.9) for name in names],
        kinds=[
            NetworkKind(model=name, architecture=("convolutional", "transformer")[place % 2], pretraining="labels")
            for place, name in enumerate(names)
        ],
        loss_weights=[0.0, 10.0],
        itm_by_weight=[ItmByWeight(model=name, values=[0.1 * place, 1 - 0.05 * place]) for place, name in enumerate(names)],
        maps=[
            MappedModel(model=names[0], projected=projected, itm=ItmWay(eta=0.4, num_images=2, classes=[0, 1], panels=[moved])),
            MappedModel(
                model=names[1],
                projected=ProjectedFeatures(num_images=10, num_fitted=8, reason="All features are constant."),
                itm=ItmWay(eta=0.4, num_images=0, reason="All images are needed."),
            ),
        ],
    )
    return ranking.model_copy(update={"features": features})


def test_kinds_are_compared_by_mean_relative_place(asked, source_of):
    section = kinds_section(source_of(asked))
    (figure,) = [block for block in section.blocks if isinstance(block, Figure)]
    assert figure.caption.startswith(
        "Architecture: mean relative place of the models of each kind, by test_auc (fine-tuned), LogME"
    )
    tables = tables_of(section)
    assert list(tables) == ["kinds-architecture"]  # all were pretrained in one way
    kinds = {row.model: row.architecture for row in asked.features.kinds}
    ranks = {row.model: row.rank for row in asked.ranking("logme").rows if row.rank is not None}
    for row in tables["kinds-architecture"]:
        own = [(rank - 1) / (len(ranks) - 1) for model, rank in ranks.items() if kinds[model] == row["Architecture"]]
        assert float(row["LogME"]) == pytest.approx(sum(own) / len(own))


def test_maps_say_what_is_held_out_and_why_one_is_missing(asked, source_of):
    section = features_section(source_of(asked))
    projected, way, spreads = [block for block in section.blocks if isinstance(block, Figure)]
    assert "fitted to 8 images" in projected.caption and "Hollow: 2 images that nothing was fitted to." in projected.caption
    assert "2 images that it did not learn from" in way.caption and "η = 0.40" in way.caption
    assert "standard deviation of the features" in spreads.caption
    reasons = [block.text for block in section.blocks if isinstance(block, Paragraph)]
    assert any("All features are constant." in text for text in reasons) and any(
        "All images are needed." in text for text in reasons
    )


def test_the_order_under_each_weight_is_compared(asked, source_of):
    rows = tables_of(features_section(source_of(asked)))["itm-loss-weights"]
    *models, agreed, with_truth = rows
    assert len(models) == len(asked.features.itm_by_weight)
    assert float(agreed["λ = 0"]) == pytest.approx(1)
    assert float(agreed["λ = 10"]) == pytest.approx(-1)
    truth = asked.ground_truth.values
    known = [row for row in asked.features.itm_by_weight if row.model in truth]
    expected = weightedtau([truth[row.model] for row in known], [row.values[1] for row in known]).statistic
    assert float(with_truth["λ = 10"]) == pytest.approx(expected)


def test_nothing_is_shown_where_nobody_asked(ranking, source_of):
    assert features_section(source_of(ranking)) is None
    assert kinds_section(source_of(ranking)) is None
    assert "features" not in ranking.model_dump()
