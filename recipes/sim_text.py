"""The words of docs/results/sim.md; numbers are put in by sim_page."""

PAGE = """\
<!-- Written by recipes/sim.py; do not edit. -->

# ρSIM: what it gives, and against what

```
python recipes/sim.py --data-dir datasets --weights-dir weights --out docs/results/sim.md
```

{progress}

{short}

`--regularizer rho_sim` adds one small term per building block: from the output of the block, a reconstructor that is thrown away
afterwards predicts the input. The paper (Cai et al., Self Identity Mapping) reports gains of 0.1 to 0.6 points of accuracy on
CIFAR-10 and CIFAR-100, with 50 000 training images, 200 epochs, three seeds and no intervals. Here are 5 000 images, 20 epochs
and small networks, so sizes cannot be compared; what can be asked is whether there is a gain, and whether it is one of ρSIM. So
it is set beside

- what costs nothing: weight decay × 3 and × 10, and dropout ({dropout_rate:.0%} of the features in front of the last layer);
- the **same cost**: the baseline trained for longer, by as much as a step with ρSIM costs more processor time, rounded up to
  whole epochs; the table below says what whole trainings took with either, as multiples of the baseline's. Where the second is
  smaller, the comparison favours ρSIM: everywhere on the GPU, and on a CPU probably for the ResNet-20, whose whole trainings cost
  more than its steps let expect ([below](#what-it-costs));
- a **placebo** (`rho_sim:placebo=true`) that predicts the tokens of another image at the same price. A gain that the placebo
  shares is no gain of ρSIM.

{longer}

From scratch: 5 000 training images and 1 000 test images of CIFAR-10 (32 pixels a side, once saved as JPEG), no validation rows,
the last epoch; SGD with learning rate 0.1, momentum 0.9, weight decay 1e-4 and batches of 128, as in the paper, but with a cosine
schedule and the augmentation `light`. Random weights, batches and augmentation are the same for all variants of a seed, so
differences are paired. ρ = 0.2, weight 0.005, mean over blocks, loss `norm_l2` and `K=auto` (16 to 64 here; released: 128),
where nothing else is said.{machines}

Accuracy is of the most probable class; differences are in percentage points. Intervals are 95 % (Student's t over seeds, or over
pairs of set, network and seed where that is said). They say how far the mean over these seeds may lie from that over very many,
not what other test images would give: one image is 0.1 points of the 1 000 of CIFAR-10, 0.6 of BreastMNIST, 0.3 of RetinaMNIST.
**Bold**: the interval excludes 0. Many comparisons are made here, and at least one in twenty would be bold by chance.

## Does it help?

**From scratch, over all pairs**: ResNet-20, -32 and -56, and ResNet-20 with mixup, CutMix or label smoothing, each pair of
trainings with the same seed, of which one has ρSIM (or its placebo).{mixed} Pairs share seeds and test images, so the
intervals are too narrow. The two deeper networks were not trained with a placebo. NLL is the negative log-likelihood, in natural
logarithms: it sees changes of the probabilities that accuracy does not. More is better in every column.

{pooled}

ResNet-20 alone, and what costs as much or nothing:

{core}

## With other regularisers, and in deeper networks

Each with ρSIM minus the same without, beside Table 2 of the paper (CIFAR-10; where a network is another one, that of the same
rank in depth). *− ResNet-20*: what the other regulariser, or the depth, does by itself to the baseline.

{table2}

## Fine-tuning

Two pretrained MobileNets at 64 pixels a side, 15 epochs, the defaults of `crossgraft tune` with batches of 64 and the epoch that
val picks, as in [other studies](repsim.md); of RetinaMNIST 1 450 images. Table 3 of the paper fine-tunes on CUB: ResNet-50 +0.26,
DenseNet-169 +0.15, ConvNeXt +2.12, Swin-B +0.33. NLL is that after temperature scaling on val. None of the sets says which images
belong to one patient: **patient leakage not checked**.

{pooled3}

Over all pairs of set, network and seed, which share sets and networks, so that these intervals, too, are too narrow.{mixed3}

{table3}

## Share of tokens and weight

Ten epochs, two seeds, each training minus the baseline of its seed. In Fig. 3 of the paper, ρ of 0.2 and 0.6 do best and accuracy
falls above 0.7; weights from 1e-5 to 1e-2 help, and too large ones restrict the network. Two seeds say little of one value
alone, so intervals here and in the next section have one width, from what means of variants and of seeds leave over in all
trainings of the sweeps together (analysis of variance without interaction; Student's t). Losses among them, they exclude 0 for
{beyond_chance}. Their width is {widths}.
Memory of a step, as a multiple of the baseline's, grows with ρ.

![Gain in accuracy over ρ and over the weight, with intervals; dashed: none]({sweeps_figure})

{sweeps}

## Losses

Ten epochs, two seeds, the same weight, which does not mean the same strength for two losses. Beside Table 10 of the paper
(ResNet-18, CIFAR-10). The default, `norm_l2`, is what the released code computes; the paper writes of `norm_mse`.

{losses}

## What it costs

As multiples of the same training without ρSIM on the same machine: median and range over all pairs, with other regularisers and
in the sweeps as well. *Time, CPU*: processor time of whole trainings, which also depends on what else the machine does. *Time of
a step, CPU*: steps made in turn with ρSIM and without. *Time, GPU*: by the clock, with several trainings at once; it is more
there, probably because networks this small wait for kernels to start. Left out are trainings whose clock probably has the start
of the process in it: those of ResNet-20 with seed 0, of which six of seven took 150 to 250 seconds more than with other seeds,
and all of the deeper networks, of which the table gives the seconds that ρSIM adds. *Memory*: of a step; on a GPU the peak of the
allocator, which differs between trainings of the same kind. The ResNets here are narrow (16 to 64 channels); a reconstructor
weighs the more the narrower its block is, also with `K=auto`, which makes it no wider than the block. Beside it Table 11 of the
paper (seconds of an iteration on CUB, on a GPU; networks of the same rank in depth), which counts 0.06 million parameters for
ResNet-18.

{costs}

## Gradients

L2 norm of the gradient of each building block in each step (`--log-gradient-norms`), mean over the blocks of the network.
*Spikes*: steps with more than twice the moving average of the step before. *Roughness*: standard deviation over steps of the
logarithm of the norm over that average. Fig. 5 of the paper shows fewer and smaller spikes with ρSIM (Swin on CUB). No such
smoothing shows here: with ρSIM or its placebo there is {smoothing} comparisons, by intervals
that exclude 0. Most spikes are the last batch of an epoch (see the figure), so their number says little of other steps.

{gradients}

![Norm of the gradient]({gradients_figure})

ResNet-20, seed 0: the gradient of all blocks together in each step (pale), and its moving average (a step counts 0.95 times what
the step after it counts). Spikes at regular distances are the last batch of each epoch: 5 000 images are 39 batches of 128 and
one of 8, whose gradient is the noisiest. Last steps of an epoch among the spikes of the figure:
{spikes}.

## Every training

{tables}
"""
