"""What the page of recipes/benchmark_select.py says beside its numbers."""

HEAD = """\
# What a selection within a budget hands over, on published tables

<!-- Written by `python recipes/benchmark_select.py`; the numbers are in selection.csv. -->

Each table is replayed by the code of `crossgraft select`, with its results in place of trainings:

```
python recipes/benchmark_select.py --out docs/results/selection.md
```

One of them, or a table of your own ([how it must
look](../how-to/which-model-in-one-hour.md#would-it-have-worked-on-my-own-results)):

```console
$ crossgraft select --replay dart --budget 10%,25%,50%
$ crossgraft select --replay dart --budget 10%,25%,50% --cold
```

The target at hand and its relatives are unknown in every table. With the *other targets known*, the rest of the table stands
for results of one's own; as a *cold start* there are other publications and ImageNet alone, and the whole publication of the
table is unknown. A cell is the mean regret in points (hundredths of accuracy or AUC) with its 95 % interval over groups of
related targets, and in parentheses the worst target. There is no interval where all regrets are the same, or with fewer than
fifteen groups. A dash: the budget is below one training, or no model can be chosen.

- *select*: whole trainings in the expected order while the budget lasts, the best on val; where val is at its upper limit, it
  stops and tries the smallest model beside.
- *first of the order*: one training. *In the order, best on val*: `select` without the rule at the limit of val.
- *highest ImageNet top-1*: one training, of the networks that have a published result.
- *random order, best on val*: mean over 200 orders. *Successive halving* begins with cheap trainings of networks in a random
  order, where the table has any, and costs them by their pixels or epochs; elsewhere it is the random order.
- *all trained, best on val*: the budget does not count.

**Costs** are published seconds on SHiFT and CPU seconds on the tables [trained here](ground_truth.md); elsewhere all
trainings cost the same. **Val** is published for SHiFT and known for the tables trained here. Elsewhere the results
themselves stand for it, so that all regrets are too small, and that of *all trained* is 0. Where deviations over seeds are
published (MedMNIST+), the table is replayed a second time, *one run*: val is drawn around the published means. On the tables
trained here nothing is known of any network as a cold start, so that the order is that of their names.

**Retracted.** Until November 2026 this page praised a scheduler that decided by value of information from a joint *belief*,
with cheap trainings and paused ones. On tables that nobody here had seen, it did no better than its own prior, and training
in the order of the prior and taking the best on val did as well or better at every budget; as a cold start on one of them it
became worse with the budget, from 0.94 to 1.18 points. The goals of this page, and the chances that another model is better,
went with it. The cause is that of the [benchmark](benchmark.md): rules were chosen after replays of these tables had been
seen.

## Select beside the plain list

`select` must not be above *in the order, best on val* by more than 0.1 points."""

DECIDED = """\
## Why there are no cheap trainings

A race (one rung of cheap trainings, at two sevenths or half of the resolution, before the whole ones) and the plain rule were
[written down first](../log.md) and then replayed once. The race was to ship if it was above the plain rule by more than 0.1
points nowhere and below it in the mean. Mean regret in points, plain → race, with one drawn run of each network as val on
MedMNIST+:

| table | start | 25 % | 50 % |
|---|---|---|---|
| medmnistplus_auc | other targets known | 0.98 → 0.44 | 0.11 → 0.01 |
| medmnistplus_auc | cold start | 1.85 → 0.35 | 0.91 → 0.14 |
| medmnistplus_accuracy | other targets known | 0.67 → **1.47** | 0.26 → 0.13 |
| medmnistplus_accuracy | cold start | 2.22 → 1.43 | 0.98 → 0.54 |
| trained_auc | other targets known | 2.24 → 2.07 | 2.13 → **2.38** |
| trained_accuracy | other targets known | 2.08 → **2.67** | 2.66 → 2.40 |

On three of 24 places (bold) it is worse by more than that, so that the plain rule ships. It is better elsewhere, −0.13 points
in the mean over all places, and as a cold start on MedMNIST+ it is better throughout: cheap trainings are worth another look
on tables that do not exist yet. They were not tuned to these.

## Each way beside select

Number of places (tables and budgets of 10, 25 and 50 %) on which the interval of the paired difference excludes 0."""
