"""The words of docs/results/similarity.md; numbers are put in by similarity_page."""

PAGE = """\
<!-- Written by recipes/similarity.py; do not edit. -->

# What fine-tuning changes, and what keeping features buys

```
python recipes/similarity.py --data-dir datasets --weights-dir weights --out docs/results/similarity.md
```

{progress}
## Chapter 3 of the thesis: three sources, one architecture

The thesis fine-tunes a ResNet50 of ImageNet and one of RadImageNet on seven medical sets and compares what comes of them
(`crossgraft compare A B --before …` does the same for two models of yours). Here a MobileNetV2 of ImageNet, of birds and of
insects (iNaturalist) is fine-tuned on BreastMNIST (all 546 training images; its smaller class has 147) and PneumoniaMNIST
(300 training images of each class), at 64 pixels a side. RadImageNet is not among the weights that are tried, so the medical
source of the thesis has no counterpart here: all three sources are natural images.

*full*: all weights; *head-first*: the head alone until it stops improving, then all weights (the thesis' "freeze"); *linear*:
the head alone; *scratch*: random weights, which no source has a part in, so that one network a set and seed is trained. Up to
15 epochs (batches of 64, AdamW and learning rates of `crossgraft tune`), early stopping after 6 epochs without a lower loss on
val, augmentation of chapter 3; the head alone up to 50 epochs, patience 10. The thesis trains up to 200 epochs with a learning
rate of 1e-5 and a patience of 30 in five folds; here a training has about 130 steps and each set its own split, with three
seeds. Both sets have two classes. None says which images belong to one patient: **patient leakage not checked**.

Test images (156 and 624), without augmentation, networks in eval mode. *CKA* is linear and debiased, of means over positions,
over all test images, at 12 building blocks. *CCA* is that of the thesis (eq. 3.1, mean over channels and five draws) at five
layers. Each number stands beside that of two random initialisations of the same architecture, others in each comparison.
Intervals are 95 %, Student's t over sets and seeds; the means over layers, sources and pairs of sources are taken first. Values
of one set lie closer together than those of two, so that these intervals are rough; the mean of each set stands beside them.
Those of AUC, accuracy, overlap and attention are of arcsine square roots, turned back, and so end within 0 and 1.

### In short

Full fine-tuning, all layers; *holds* and *the opposite* where the interval excludes 0. The tables below have the parts.

{in_short}

### AUC

{aucs}

### Do layers become different? (Fig. 3.3)

![Similarity over layers]({folder}/layers.svg)

Lines are means over seeds (and over pairs of sources), bands go from the smallest to the largest value.
In CKA the grey band is wide: one pair of random initialisations is no baseline, another of the same architecture can lie far from
it.

{layers}

Where 0 is published (*about as alike as*), *not told apart* agrees with it.

**What statistics of BatchNorm do.** Debiased CKA of penultimate features to those of the pretrained network, on test. *Alone*:
no weight is changed, only means and variances are those of the training images. Where *alone* is as low as *full*, moved
statistics suffice for the change, and it says nothing of weights. The thesis' ResNet50 has BatchNorm, too.

{statistics}

**What tells classes apart.** CKA weighs directions by their variance, CCA counts all alike. Where two networks are trained to
tell the same classes apart, features of both stretch along that difference, and CKA grows by it, whatever the rest does. *Share*:
between classes, of the variance of penultimate test features. *Within classes*: with the mean of its class taken from each
feature. Means over pairs of sources.

{classes}

**What CCA can tell.** Positions × channels in each draw, of the 20 000 × 64 that the thesis asks for, and what two random
initialisations reach:

{positions}

With n independent positions and d channels a side, CCA of unrelated features has a mean of about √(d / n); positions of one
image are not independent, so that it is more, and it tends to 1 as n approaches 2 d. Where a map has 2 × 2 positions, as the
last ones do at this size, the floor of BreastMNIST stands on 624 positions of 64 channels; only values above the floor of the
same layer mean anything.
CKA of the same layers is debiased and tends to 0 for unrelated features; those of two random initialisations see the same images
through the same layers, and are not unrelated.

### Do networks fail alike? (Fig. 3.5)

![Prediction similarity]({folder}/mistakes.svg)

Predictions before fine-tuning are those of a linear probe on the pretrained features (logistic regression, the same in every
seed): the released code has none. LINEAR is the same idea with a head that was trained by gradient steps. κ is
(P − independent) / (1 − independent).

{mistakes}

{mistakes_claims}

### Does similarity go with the gain? (Fig. 3.6)

![AUC gain against similarity]({folder}/gains.svg)

Points are sets, seeds and the ways *full* and *head-first*; the figure has five of the layers. Spearman's ρ of the similarity
before and after with the relative gain over random weights, and a 95 % interval (Fisher's z with the standard error of Bonett and
Wright; n is the number of sets and seeds, which is small). *Within sets*: both numbers less the mean of their set, because a set
that is easier from random weights has smaller gains whatever layers do; that costs a value of each set, which the interval does
not know. The thesis finds no association. Many correlations are computed here; one in twenty would exclude 0 by chance. Where all
points correlate and those within sets do not, it is the sets that differ: one gains much, its layers change much, and nothing is
said of layers.

{gains}

## What keeping features buys: weights, features and maps of five methods

RepSim (its Tables 2 and 3, Figs. 3 to 5) claims flatter minima, weights nearer to the centre of several tasks, features that
overlap with the pretrained ones, and attention that stays; that less is forgotten is claimed and never measured. Here: a small
ViT (LayerNorm; six blocks of width 96, 32 pixels; pretrained for this page for 10 epochs on 5 000 natural images) and a
MobileNetV2 0.35 (BatchNorm, 64 pixels, ImageNet), BreastMNIST and PneumoniaMNIST, 10 epochs, batches of 64, augmentation `light`,
the epoch picked on val. RepSim is the default of `--regularizer repsim` (1 − debiased CKA of the batch), L2-SP that of
`--regularizer l2_sp`. *Interpolated* costs no training: the middle between LINEAR and FULL, statistics of BatchNorm estimated on
the training images.

Sharpness is that of Table 2: the largest rise of the loss on all test images within ρ = 0.01 around all weights, head and body,
by one step along the gradient and by the best of five. The centre of a method is the mean of its weights over both sets (the
paper has five), so that its distance is half of that between the two, one number a seed; its accuracy is that under the head of
each set. The probe is a linear one, on 1 000 natural images, measured on 500 others. Distance, overlap and gap compare
test features with those of LINEAR, the pretrained ones; the gap is the silhouette of two clusters within the commonest class.
CKA, which RepSim keeps, takes the mean of features away, and distance and overlap do not: a shift of all features at once, which
moved statistics of BatchNorm can be, costs nothing in CKA and all of the overlap. Attention is the last block's (ViT only):
overlap of the patches that hold a fifth of it. Means and 95 % intervals over sets and seeds.

{methods}

On a plane the rise would be ρ times the length of the gradient (*Gradient*). Where one step gives another number, and five steps
several times that, a ball of this radius is not small for the network, and one step, as in Table 2, can miss most of the rise.
Sharpness also says how sure a network is of these images, not only how curved its loss is. A network that moved less is closer to
any centre (*To start*), and LINEAR is at it. So these numbers can only be judged beside accuracy and the way that was gone,
and not against those of another architecture: the paper's are of a ViT-B.

Differences from FULL, paired by set and seed. The verdict is of RepSim alone.

{claims}

![Features in one plane]({folder}/pca.svg)

Test features of {first_set} by {network}, seed 0, in the plane of the principal components of all of them (Fig. 3); grey: LINEAR.

![Features of one class]({folder}/tsne.svg)

The commonest class of the same images, each network by t-SNE of its own (Fig. 4). t-SNE makes gaps where there are none: *Gap in
one class* is measured among the features, *gap as drawn* in the picture.
"""
