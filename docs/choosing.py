"""Draws docs/choosing.svg: from a question to an estimator, as a picture whose leaves are links.

python docs/choosing.py

It is narrow, so that its text can be read on a phone, and takes its colours from the page, so that it is right by day
and by night. A test sees to it that the file is what this script writes.
"""

from html import escape
from pathlib import Path

WIDTH, MARGIN, SPINE = 440, 8, 26
LEAF, GAP, AFTER = 44, 8, 26  # heights: of a leaf, between leaves, between questions

# A question, and for every answer to it the estimator and the page of the guide.
QUESTIONS = [
    ("Do you have photographs?", [
        ("the class of a scene", "vision.SceneClassifier", "scenes"),
        ("its class, by parts nobody labelled", "vision.PartClassifier", "parts"),
        ("where objects are", "vision.DeformablePartDetector", "detection"),
    ]),
    ("Are there no labels, only groups to find?", [
        ("groups of similar rows", "GMMKMeans", "clustering"),
    ]),
    ("Is part of the answer never given?", [
        ("one instance of a bag decides", "LatentSVC", "bags"),
        ("any other hidden part", "LatentStructuralSVM", "latent"),
    ]),
    ("Does an answer have several parts?", [
        ("a label for every token or step", "SequenceSVM", "sequences"),
        ("a set of labels for a row", "MultilabelSVM", "multilabel"),
        ("labels of pixels, regions, nodes", "StructuralSVM(models.Graph)", "graphs"),
        ("a tree over the words of a sentence", "StructuralSVM(models.DependencyTree)", "trees"),
        ("an answer that you can search", "StructuralSVM(your model)", "own_model"),
    ]),
    ("Then there is one answer for each row:", [
        ("a class", "LinearSVC", "linear"),
        ("a number", "LinearSVR", "linear"),
        ("an order inside groups", "RankingSVM", "ranking"),
    ]),
]  # fmt: skip


def drawn() -> str:
    """The picture as SVG, to be put into a page as it is."""
    parts, y = [], MARGIN
    spine_from = y
    for number, (question, leaves) in enumerate(QUESTIONS):
        last = number == len(QUESTIONS) - 1
        parts.append(f'<rect class="question" x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="38" rx="8"/>')
        parts.append(f'<text class="asked" x="{MARGIN + 14}" y="{y + 24}">{escape(question)}</text>')
        y += 38 + GAP
        for what, name, page in leaves:
            middle = y + LEAF / 2
            parts.append(f'<path class="way" d="M{SPINE} {middle}H{SPINE + 22}"/>')
            parts.append(f'<a href="guide/{page}.html">')
            width = WIDTH - SPINE - 22 - MARGIN
            parts.append(f'<rect class="leaf" x="{SPINE + 22}" y="{y}" width="{width}" height="{LEAF}" rx="8"/>')
            parts.append(f'<text class="what" x="{SPINE + 36}" y="{y + 18}">{escape(what)}</text>')
            parts.append(f'<text class="name" x="{SPINE + 36}" y="{y + 36}">{escape(name)}</text></a>')
            y += LEAF + GAP
        if last:
            spine_to = y - GAP - LEAF / 2
        else:
            parts.append(f'<text class="no" x="{SPINE + 8}" y="{y + AFTER - 12}">no ↓</text>')
            y += AFTER - GAP + 4
    spine = f'<path class="way" d="M{SPINE} {spine_from + 20}V{spine_to}"/>'
    body = "\n".join([spine, *parts])
    title = "From what you have to an estimator: the same as the table below"
    height = round(y - GAP + MARGIN)
    return (
        f'<svg class="choosing" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'role="group" aria-label="{title}">\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(drawn(), encoding="utf-8")
