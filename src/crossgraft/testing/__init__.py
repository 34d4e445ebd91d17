"""Contract tests that authors of plug-ins can run on their own plug-ins."""

from __future__ import annotations

from crossgraft.testing.contracts import NUM_IMAGES as NUM_IMAGES
from crossgraft.testing.contracts import SCORE_CONTRACTS as SCORE_CONTRACTS
from crossgraft.testing.contracts import ContractError as ContractError
from crossgraft.testing.contracts import check_score as check_score

__all__ = ["SCORE_CONTRACTS", "NUM_IMAGES", "ContractError", "check_score"]
