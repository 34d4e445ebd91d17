"""What the cards of geometry print runs as it stands, and each card says the same five things."""

import re
from pathlib import Path

import pytest
import torch

CARDS = sorted((Path(__file__).parents[3] / "docs" / "geometry").glob("*.md"))


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.stem)
def test_a_card_runs_and_says_when_its_number_misleads(card, capsys):
    text = card.read_text(encoding="utf-8")
    for heading in ("idea", "when it helps", "when it misleads", "cost", "source"):
        assert f"**{heading}" in text.lower(), heading
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with torch.random.fork_rng():
        exec(code, {})
    assert capsys.readouterr().out
