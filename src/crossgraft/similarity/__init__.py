"""How alike two representations of the same images are."""

from crossgraft.similarity.linear_cka import linear_cka as linear_cka
