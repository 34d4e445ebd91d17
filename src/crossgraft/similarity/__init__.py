"""How alike two representations of the same images are."""

from crossgraft.similarity.linear_cka import CkaPair as CkaPair
from crossgraft.similarity.linear_cka import both_linear_cka as both_linear_cka
from crossgraft.similarity.linear_cka import linear_cka as linear_cka
from crossgraft.similarity.streaming_cka import StreamingCka as StreamingCka
