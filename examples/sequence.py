"""
Reading handwritten codes
=========================

Digits in strong noise are hard to tell apart one by one. If they follow each other by rules, a sequence model learns
the rules together with the looks of the digits, and reads whole codes. It can also say where it is unsure, and what
else a code might be. The digits come with scikit-learn, the codes are generated.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import LinearSVC, SequenceSVM
from maxmargin.plots import transitions

LENGTH = 8
rng = np.random.default_rng(0)
images, digits = load_digits(return_X_y=True)
images = images / 16.0
half = rng.random(digits.size) < 0.5


def codes(n, mine):
    """Codes in which k is followed by k + 1, sometimes by k + 2 or k + 7, written with a shaky hand."""
    pictures, labels = [], []
    for _ in range(n):
        code = (rng.integers(10) + np.cumsum(rng.choice([1, 2, 7], LENGTH, p=[0.6, 0.3, 0.1]))) % 10
        chosen = [rng.choice(np.flatnonzero(mine & (digits == k))) for k in code]
        pictures.append(np.clip(images[chosen] + 0.45 * rng.normal(size=(LENGTH, 64)), 0.0, 1.0))
        labels.append(code.tolist())
    return pictures, labels


# %%
# A sequence is a matrix with one row per digit, its answer a list with one label per row.

X, Y = codes(300, half)
X_test, Y_test = codes(300, ~half)
reader = SequenceSVM(C=0.05, tol=1e-4, bias=True, random_state=0).fit(X, Y)
alone = LinearSVC(C=0.05, random_state=0).fit(np.concatenate(X), np.concatenate(Y))
print(reader.certificate_)
print(f"digits read right, one by one   {100 * alone.score(np.concatenate(X_test), np.concatenate(Y_test)):.1f} %")
print(f"digits read right, as codes     {100 * reader.score(X_test, Y_test):.1f} %")

# %%
# ``margins`` finds the code that the reader is least sure of, ``k_best`` lists how else it may be read.

worst = int(np.argmin([margin.min() for margin in reader.margins(X_test)]))
for labels, score in reader.k_best(X_test[worst], 3):
    print(f"{' '.join(map(str, labels))}   score {score:.3f}")
print(f"{' '.join(map(str, Y_test[worst]))}   is true")

# %%
# That code, and the rules as they were learned: which digit likes to follow which.

figure = plt.figure(figsize=(7, 6.5), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 3.6])
top.suptitle(f"read as {' '.join(map(str, reader.predict_single(X_test[worst])))}")
for image, panel in zip(X_test[worst], top.subplots(1, LENGTH), strict=True):
    panel.imshow(image.reshape(8, 8), cmap="gray_r")
    panel.set_axis_off()
transitions(reader, ax=bottom.subplots())
plt.savefig("sequence.png", dpi=110)
