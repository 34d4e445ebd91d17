"""The words of docs/results/repsim.md; numbers are put in by repsim_page."""

PAGE = """\
<!-- Written by recipes/repsim.py; do not edit. -->

# Fine-tuning that keeps what the model knows

```
python recipes/repsim.py --data-dir datasets --weights-dir weights --out docs/results/repsim.md
```

{progress}

**An earlier version of this page said that RepSim ends less similar to the pretrained network than full fine-tuning. That was
true of what had been run, and wrong about RepSim.** Two things were behind it, and neither is the idea of the paper, which
fine-tunes a ViT. (1) All networks had BatchNorm, which normalised with the statistics of each batch while they were trained.
The features of a training step, those of the pretrained network (with its kept statistics) and those of the finished one
(with moved statistics) are then three different functions; moving the statistics alone, with no weight changed, takes CKA to
where full fine-tuning ends. So the column measured BatchNorm, and RepSim's term paid for undoing it. (2) The covariance of a
batch was compared with that of all training images. Its own sampling noise, (r + 1) / (b − 1) of the norm of the target for
an effective rank r and b images, is larger than what there is to keep, and the network lowers it by shrinking the spectrum of
its features. With LayerNorm the published ordering shows; with the same images under both networks, the noise cancels.

Every training: 15 epochs, batches of 64 images, augmentation `light` (none with LINEAR, whose features are computed once),
AdamW with the defaults of `crossgraft tune`; MobileNets at 64 pixels a side, the ViT and the ResNet at 32, for which they
were trained. The ViT is small (six blocks of width 96, 0.7 million parameters) and was trained for this page on 5 000 natural
images; a ViT with ImageNet weights was not tried. Each set has its own train, val and test split; the epoch is picked on val
(highest AUC), test is looked at once. PneumoniaMNIST is trained on 300 images of each class; RetinaMNIST is cut to 1450
images, of which about 980 train. None of the sets says which images belong to one patient: **patient leakage not checked**.

*CKA* compares penultimate features of the test images, without augmentation, with those of the pretrained network as it came;
*to re-estimated* with the same weights after the statistics of BatchNorm were estimated on the training images. Of two
unrelated sets of features the biased estimate is not 0, the debiased one is. Accuracy is of the most probable class.
Intervals are 95 %: over seeds (Student's t) for a variant, over pairs of set and network for a difference; both are rough
with three seeds and few pairs.

*paper*: the covariance of the batch against that of all training images, not divided (`repsim:preset=paper`); *batch*: the
same images under both networks; *repsim*: the default, 1 − debiased CKA of the batch, weight 0.3 √(d / 64) for d features (0.30
for the ResNet-20, 0.37 for the ViT, 1.34 for the MobileNets); *procrustes*: image by image up to rotation and scale. The others
have weight 1 where no other is said. *train*, *frozen*, *adapt* are those of `--batch-norm`.

## Does the default keep?

Debiased CKA / accuracy, means over seeds, of the two forms of the loss, each as `crossgraft tune` trains it when nothing else
is said: `--regularizer repsim` is 1 − debiased CKA of the batch with weight 0.3 √(d / 64); `repsim:preset=paper` is equations
13 and 14, the covariance of the batch against that of all training images. Beside both, statistics of BatchNorm stay as they
came. FULL trains with those of each batch, as it does by default. The long trainings (15 epochs, 135 to 240 steps) are those
of all of this page; the short ones (2 and 6 epochs, 16 to 90 steps), by `recipes/repsim_few_steps.py`, have at most 100
training images per class (20 of Medical MNIST), batches of 16 or 32. – was not trained.

{headline}

Differences to FULL, means over pairs of set, length and network, with intervals over them:

{differences}

**Until November 2026 statistics of BatchNorm were trained below 100 steps, because frozen ones cost accuracy there. That was
the wrong cause.** AdamW changes each weight by about its learning rate, however small the gradient is; BatchNorm in training
mode takes out what that does to mean and scale of activations, kept statistics do not, and 1 − CKA has no gradient at the
start, where it is 0. So it was the first ten steps of the usual size that broke features, and with them the accuracy, and
there were too few steps left to mend them. Now the statistics stay in short trainings, too: in N < 100 steps the head is
trained alone first, on features that are computed once, and then the pretrained part with N / 100 of the usual rate. The
rule, the one before it, which cost accuracy, and what both were chosen on stand in the [log](../log.md#repsim-in-short-runs);
*few steps* are the four sets that it was not chosen on.

The long trainings with intervals over seeds:

{kept}

## What BatchNorm should do

Each mode minus *train*, the statistics of each batch, over pairs of set and network (mean over their seeds). {decided}

{batch_norm}

## By kind of network

Means over sets and networks, with an interval over seeds; – where a variant is not there yet for each of them. The last column
is the mean difference over pairs, wherever both are there; with *adapt* it is of the similarity to the re-estimated network.

{kinds}

![Accuracy against similarity]({figure})

Each point is the mean over sets, networks and seeds, and is drawn once a seed of it is there for all of them; the line joins
LINEAR and FULL, the dashed curve the networks between them whose weights are mixed
([WiSE-FT](../how-to/interpolate-two-models.md)).

## Which published orderings hold

Difference between two variants, one for each pair of set and network (mean over seeds): their mean with an interval
(Student's t over the pairs, which share images and weights), and in how many pairs the first is ahead.

{orderings}

## Ablations

The differences of Table 5 of the paper (ISIC 2018, ViT-B/16), on BreastMNIST: ViT, ResNet-20 and MobileNetV2 0.35, the last
two with statistics of BatchNorm that stay; over pairs of network and seed. *With μ*: the means are aligned, too, with weight 1.
All is trained for 15 epochs, so that smaller batches are more steps; the MobileNet, whose Q has 1280 × 1280 numbers, has none
of 4.

{ablations}

So the published gain of larger batches shows, and it is the noise of the covariance: in the ViT it is gone once the same images
are looked at under both networks. A learned Q and leaving out μ show no gain in similarity; where the sign is the opposite of the
paper's, intervals contain 0. The ResNet-20 does not learn BreastMNIST at weight 1 (in nearly all of these trainings its accuracy
is the share of the larger class), so it says nothing of accuracy.

## Weights

Seed 0, over the pairs of set and network that have all of the weights of a form which are shown. A weight says little by itself;
`--keep` finds the one that ends at a similarity.

{weights}

## Against what costs nothing

How much more accurate is a variant than a line at the same debiased CKA? *Weights mixed*, *statistics estimated*: networks
between LINEAR and FULL of mode *train*, with the statistics of BatchNorm mixed or estimated; *line*: straight between the
two in the mode of the variant. Beyond the ends of a line its nearer end counts.

{free}

## What keeping is for

*Probe*: accuracy of a linear probe on 500 other images with the tuned body, fitted to up to 1 500 (natural images: ten
classes; the other medical set: the next of the three). *Corrupted*: mean accuracy on all test images of the set with noise,
blur, half the contrast, more brightness or JPEG at quality 10. None of the sets at hand has a second source of the same
disease.

{uses}

Differences to FULL:

{use_differences}

So, of `repsim` beside FULL of the same mode, wherever the interval says:

{bought}

## Beside the published table

RepSim fine-tuned ViT-B/16 at 224 pixels on five other sets, 50 epochs in batches of 128. Orderings can be compared, sizes
cannot.

{published}

## Every set and network

Mean over the seeds with an interval over the seeds.

{tables}
"""
