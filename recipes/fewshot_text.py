"""The words of docs/results/fewshot.md; numbers are put in by fewshot_page."""

PAGE = """\
<!-- Written by recipes/fewshot.py; do not edit. -->

# Few-shot heads on real images: when does a method earn its cost?

```
python recipes/fewshot.py --data-dir datasets --weights-dir weights --out docs/results/fewshot.md
```

Images: {sets}.

Episodes have five classes (three for BUSI) with 1, 5 or 20 labelled images per class and ten queries per class, or ways and
shots that vary by the rule of Meta-Dataset. There are 600 episodes per rule, the same for all heads. Support and query sets
share no lesion, no speaker and no frames that look alike, where such groups are known.

The networks are frozen: a MobileNetV1 0.5 (ImageNet), a Conv-4 (miniImageNet), a ResNet-20 (CIFAR-10; not tested on CIFAR-10
itself), and on Omniglot also a Conv-4 that was trained on Omniglot, for which it is a *seen* domain. *Universal* is the same
ResNet-20 into which `crossgraft distil` put three networks, of CIFAR-10, chest X-rays (PneumoniaMNIST) and brain slices, in
1000 steps. The {num_rows} rows are in [fewshot/](fewshot/); a dash below was not measured.

Two baselines are adapted to every episode: logistic regression (C = 10) and ridge regression, both on features of unit length,
at a fraction of the cost of CoPA. A method that is not above them has not earned its cost.

## The answer

{told}

*Above* and *below*: the interval of the mean difference over sets excludes 0. Differences are means within a set over its
networks, then over sets, with intervals of 95 % over sets (Student's t): they tell what to expect on another set of this kind.
Several networks on the same images do not count as several sets. The columns *above / below* count pairs of set and network
whose own interval, over episodes, excludes 0.

{gains}

### On which sets a method earns its cost

Mean difference to logistic regression over the networks of a set, with the number of networks for which the interval over
episodes is above and below 0; bold: above 0 for all of them. TSA, CoPA + TSA and fine-tuning adapt to 60 episodes, the others to
600. To pick the best line of a set after the fact is to choose on the queries.

{by_set}

### Under Meta-Dataset's rule the baseline decides

Its support sets have different numbers of images per class, its query sets have equal numbers. Logistic and ridge regression
lean towards large classes; prototypes, and the heads built on them, do not. Against the plain baselines nearly everything seems
to be a gain:

{uneven}

Against baselines whose classes count equally (`logistic:balanced=true`, `ridge:balanced=true`), over 60 episodes:

{balanced_gains}

So under that rule a difference to an unbalanced baseline is no evidence for a method, and the answer above is about the
balanced ones. The two published tables follow this rule.

Published tables (Meta-Dataset, a ResNet-18) have no such baseline. In them CoPA is above URL by 1.0 points on average of 13
domains after training on eight of them, and by 2.0 after training on ImageNet, in all 13 domains; TSA is above URL by 3.2
and 5.8, most of it from Traffic Sign (20) and CIFAR (8 to 10); CoPA + TSA is above TSA by 0.9 and 0.5, in 11 and in 8 of 13.

## Accuracies

Means over 600 episodes. The best of a line is bold, which does not say that it is separable from the next.

{heads}
### Meta-Dataset, with baselines that count classes equally

60 episodes.

{balanced}

## Class weights from the ImageNet head

Tip-Adapter starts from a vector per class, with CLIP the features of its name. Here rows of the ImageNet head stand in,
averaged over the labels that name a class of CIFAR-10 (for the deer three antelopes). Alone they need no labelled image at
all; *prototypes* are class means of the support set, as in the tables above.

{named}

## Inside the network

TSA, CoPA + TSA and fine-tuning, 60 episodes (the column `episodes` of the rows) of five ways (three for BUSI) and five
shots, beside the heads on the same episodes. {on_gpus}

{inside}

{inside_gains}

**TSA in a MobileNet.** At the authors' rate for unseen domains TSA falls far below its baselines in the MobileNetV1, and not in
the other networks. `auto` adapts convolutions larger than one pixel, and there these are depthwise: to nine numbers per channel
TSA adds a full matrix. At that rate the loss on the support set rises, which `crossgraft` warns of. At the rate for seen
domains, and with one number per channel (`form=vector`), in the first 20 of these episodes:

{rates}

Without the MobileNet, which was left out after this was seen and not before, TSA at the rate for unseen domains is
{tsa_elsewhere}.
It takes 460 to 1800 times as long as logistic regression, on a CPU.

## Cost

Milliseconds of one thread for `fit` and `predict` of an episode, median over the sets. Of rows whose episodes are kept beside
them (`…-episodes.csv.gz`) it is the median of the time of the thread; others are means of the time of the clock, on a machine
that had other work as well: read the order, not the digits. Costs on a GPU are not counted. [Benchmarks](benchmarks.md) has
ratios to a floor.

{costs}

## The printed averages and ranks

Recomputed from the accuracies and intervals that the slides of CoPA print, over the first ten data sets
(`crossgraft.statistics.rank_intervals`; `tests/golden/test_leaderboard_ranks.py`):

| trained on all | CNAPS | S-CNAPS | SUR | URT | Tri-M | FLUTE | URL | CoPA | TSA | TA2-Net | CoPA + TSA |
|---|---|---|---|---|---|---|---|---|---|---|---|
| printed rank | 10.3 | 8.7 | 8.7 | 7.1 | 7.9 | 7.8 | 4.5 | 3.0 | 3.1 | 3.3 | 2.6 |
| rule of the leaderboard | 9.95 | 8.85 | 8.15 | 7.1 | 7.5 | 7.8 | 4.5 | 3.0 | 3.15 | 3.4 | 2.6 |
| plain ranks | 10.0 | 8.9 | 8.25 | 7.1 | 7.25 | 7.65 | 5.05 | 2.55 | 3.45 | 4.15 | 1.65 |

| trained on ImageNet | Finetune | ProtoNets | BOHB | FP-MAML | AFP-MAML | FLUTE | URL | CoPA | TSA | TA2-Net | CoPA + TSA |
|---|---|---|---|---|---|---|---|---|---|---|---|
| printed rank | 9.3 | 7.2 | 8.0 | 9.0 | 7.1 | 10.1 | 5.3 | 4.1 | 2.5 | 3.2 | 2.2 |
| rule of the leaderboard | 8.6 | 7.1 | 7.9 | 8.75 | 6.9 | 10.2 | 5.35 | 3.5 | 2.45 | 3.1 | 2.15 |
| plain ranks | 8.6 | 7.0 | 7.9 | 8.7 | 6.8 | 10.3 | 5.8 | 3.25 | 2.55 | 3.5 | 1.6 |

So the printed ranks follow the rule of the leaderboard, where heads within each other's intervals share one. By it CoPA is
level with TSA and TA2-Net on the first table; by plain ranks it would be ahead of them. Slips: the averages of Tri-M, 76.2 and
73.8, are those of FLUTE (its own are 74.5 and 72.7); TSA's average over all is 79.0 (printed 79.2), CoPA's after ImageNet
67.8 (67.7), URL's 65.8 (65.9).

## What limits this

- Small networks and small images: the published results are of a ResNet-18 at 84 pixels that was trained on many domains.
- Learning rates are those of the authors. Where they have one for seen and one for unseen domains both are shown, because
  nobody tells a user which one is right for his images; to take the better one afterwards is to choose on the queries.
- An interval over episodes is about these images. Only the sets tell of others, and they are few.
"""
