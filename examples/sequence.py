"""Reading handwritten codes: digits that are hard to tell apart, in an order that follows rules.

python examples/sequence.py

The digits ship with scikit-learn; the codes are generated. Writes sequence.png.
"""

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from maxmargin import LinearSVC, SequenceSVM
from maxmargin.plots import convergence, transitions

LENGTH = 8


def codes(rng, images, digits, n):
    """Codes in which a digit is followed by its neighbours on a circle, most of the time, written with a shaky hand."""
    step = np.zeros((10, 10))
    for k in range(10):
        step[k, [(k + 1) % 10, (k + 2) % 10, (k + 7) % 10]] = 0.6, 0.3, 0.1
    pictures, labels = [], []
    for _ in range(n):
        code = [int(rng.integers(10))]
        while len(code) < LENGTH:
            code.append(int(rng.choice(10, p=step[code[-1]])))
        chosen = [rng.choice(np.flatnonzero(digits == k)) for k in code]
        pictures.append(np.clip(images[chosen] + 0.45 * rng.normal(size=(LENGTH, 64)), 0.0, 1.0))
        labels.append(code)
    return pictures, labels


def main():
    rng = np.random.default_rng(0)
    images, digits = load_digits(return_X_y=True)
    images = images / 16.0
    half = rng.random(digits.size) < 0.5
    X, Y = codes(rng, images[half], digits[half], 300)
    X_test, Y_test = codes(rng, images[~half], digits[~half], 300)

    reader = SequenceSVM(C=0.05, tol=1e-4, bias=True, random_state=0)
    for _ in range(2):  # the first fit compiles, the second one is drawn
        reader.fit(X, Y)
    alone = LinearSVC(C=0.05, random_state=0).fit(np.concatenate(X), np.concatenate(Y))
    print(f"{len(X)} codes of {LENGTH} digits. {reader.certificate_}\n")
    print(f"digits read right, one by one   {100 * alone.score(np.concatenate(X_test), np.concatenate(Y_test)):.1f} %")
    print(f"digits read right, as codes     {100 * reader.score(X_test, Y_test):.1f} %\n")
    worst = int(np.argmin([m.min() for m in reader.margins(X_test)]))
    print("The code it is least sure of, and how it may be read:")
    for labels, score in reader.k_best(X_test[worst], 3):
        print(f"   {' '.join(map(str, labels))}   score {score:.3f}")
    print(f"   {' '.join(map(str, Y_test[worst]))}   is true")

    figure = pyplot.figure(figsize=(13, 7), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.0, 2.2])
    for t, panel in enumerate(top.subplots(1, LENGTH)):
        panel.imshow(X_test[worst][t].reshape(8, 8), cmap="gray_r")
        panel.set_axis_off()
    top.suptitle(f"read as {' '.join(map(str, reader.predict_single(X_test[worst])))}")
    panels = bottom.subplots(1, 3)
    transitions(reader, ax=panels[0])
    convergence(reader, ax=panels[1:])
    figure.savefig("sequence.png", dpi=110)
    print("\nPicture: sequence.png")


if __name__ == "__main__":
    main()
