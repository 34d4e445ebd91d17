"""The words of docs/results/fewshot.md; numbers are put in by fewshot_page."""

PAGE = """\
<!-- Written by recipes/fewshot.py; do not edit. -->

# Few-shot heads on real images: when does a method earn its cost?

```
python recipes/fewshot.py --data-dir datasets --weights-dir weights --out docs/results/fewshot.md
```

Images: {sets}.

Episodes have five classes (three for BUSI) with 1, 5 or 20 labelled images of each and ten queries of
each; or ways and shots vary by the rule of Meta-Dataset. There are 600 of each kind, the same for all heads. Support and
queries share no lesion, no speaker and no frames that look alike, where such groups are known.

Networks are frozen: a MobileNetV1 0.5 (ImageNet), a Conv-4 (miniImageNet), a ResNet-20 (CIFAR-10; left out on these images),
and on Omniglot also a Conv-4 that was trained on Omniglot: there it is a *seen* domain. The rows are in
[fewshot/](fewshot/); {num_rows} are there, and what is missing below was not measured yet.

Two baselines stand in every episode: logistic regression (C = 10) and ridge regression, both on features of unit length, for
a fraction of the cost of CoPA. A method that is not above them has not earned its cost.

## The answer

{told}

Differences are means over pairs of set and network, with intervals of 95 % over these pairs (Student's t): they tell what to
expect on another set of this kind. *Above / below* counts pairs where the interval over the episodes of that pair leaves out 0.

{gains}

Published tables (Meta-Dataset, a ResNet-18) have no such baseline. In them CoPA is above URL by 1.0 points on average of 13
domains after training on eight of them, and by 2.0 after training on ImageNet, in all 13 domains; TSA is above URL by 3.2
and 5.8, most of it from Traffic Sign (20) and CIFAR (8 to 10); CoPA + TSA is above TSA by 0.9 and 0.5, in 11 and in 8 of 13.

## Accuracies

Means over 600 episodes. The best of a line is bold; that is not to say that it is separable from the next.

{heads}
## Class weights from the ImageNet head

Tip-Adapter starts from a vector per class, with CLIP the features of its name. Here rows of the ImageNet head stand in,
averaged over the labels that name a class of CIFAR-10 (for the deer three antelopes). Alone they need no labelled image at
all; *prototypes* are class means of the support set, as in the tables above.

{named}

## Inside the network

TSA, CoPA + TSA and fine-tuning, 60 episodes of five ways (three for BUSI) and five shots, beside the heads on the same
episodes.

{inside}

{inside_gains}

## Cost

Milliseconds of one thread for `fit` and `predict` of an episode, mean over the sets, on a machine that had other work as well:
read the order, not the digits. [Benchmarks](benchmarks.md) has ratios to a floor.

{costs}

## What limits this

- Small networks and small images: the published results are of a ResNet-18 at 84 pixels that was trained on many domains.
- Learning rates are those of the authors. Where they have one for seen and one for unseen domains both are shown, because
  nobody tells a user which one is right for his images; to take the better one afterwards is to choose on the queries.
- An interval over episodes is about these images. Only the pairs tell of others.
"""
