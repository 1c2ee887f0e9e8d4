"""Builds the documentation into docs/_build: the API from the docstrings (pdoc), and the pages written by hand.

python docs/build.py

Nothing is fetched, and the pages fetch nothing when they are read. A link from one page to a file that is not there
is an error.
"""

import html
import re
import shutil
from pathlib import Path

import pdoc
from pdoc.render_helpers import formatter, to_html

import maxmargin

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "_build"
PAGES = {
    "README.md": "index.html",
    "docs/mathematics.md": "mathematics.html",
    "docs/detection.md": "detection.html",
    "docs/clusters.md": "clusters.html",
    "docs/scaling.md": "scaling.html",
    "examples": "examples.html",
    "CONTRIBUTING.md": "contributing.html",
    "CHANGELOG.md": "changelog.html",
    "benchmarks/results/linear.md": "benchmark.html",
    "benchmarks/results/structured.md": "benchmark_structured.html",
    "benchmarks/results/out_of_core.md": "benchmark_out_of_core.html",
    "benchmarks/results/latent.md": "benchmark_latent.html",
    "benchmarks/results/parts.md": "benchmark_parts.html",
    "benchmarks/results/scenes.md": "benchmark_scenes.html",
    "benchmarks/results/detection.md": "benchmark_detection.html",
    "benchmarks/results/clusters.md": "benchmark_clusters.html",
    "examples/papers/README.md": "papers.html",
}
EXAMPLES = [
    "demo.py", "sequence.py", "segmentation.py", "multilabel.py", "own_model.py", "regularizers.py", "path.py",
    "ranking.py", "bags.py", "clustering.py", "out_of_core.py", "clusters.py", "detection.py",
]  # fmt: skip
SHELL = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body><nav>{links}</nav><main class="pdoc">{body}</main></body></html>
"""
STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #222; margin: 0 auto; max-width: 54rem; padding: 1rem 1.5rem; }
nav a { margin-right: 1.2rem; } a { color: #1b6ca8; text-decoration: none; } a:hover { text-decoration: underline; }
pre { background: #f6f7f8; padding: .7rem 1rem; overflow-x: auto; font-size: 14px; line-height: 1.4; }
code { font-size: .92em; } h1, h2, h3 { line-height: 1.25; margin-top: 1.8em; } h1 { margin-top: 1em; }
table { border-collapse: collapse; display: block; overflow-x: auto; } img { max-width: 100%; }
td, th { border-bottom: 1px solid #ddd; padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
"""


def write_page(source: str, title: str, text: str) -> None:
    """Markdown to a page of its own, with links to files turned into links to pages."""
    links = {"index.html": "maxmargin", "maxmargin.html": "API", "mathematics.html": "Mathematics"}
    links |= {"detection.html": "Detectors", "clusters.html": "On a cluster"}
    links |= {"detection.html": "Detectors", "scaling.html": "Scale"}
    links |= {"examples.html": "Examples", "contributing.html": "Contributing", "changelog.html": "Changes"}
    bar = "".join(f'<a href="{target}">{name}</a>' for target, name in links.items())
    folder = (ROOT / source).parent

    def to_page(match: re.Match[str]) -> str:
        target = match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path = (folder / target).resolve()
        name = path.relative_to(ROOT).as_posix()
        if path.parent.name == "examples":
            return f'{match[1]}="{PAGES["examples"]}"'
        if name not in PAGES and path.suffix != ".png":
            raise SystemExit(f"{source}: the link to {target} leads to no page.")
        if path.suffix == ".png":
            shutil.copy(path, OUT / path.name)
            return f'{match[1]}="{path.name}"'
        return f'{match[1]}="{PAGES[name]}"'

    body = re.sub(r'(href|src)="([^"]*)"', to_page, to_html(text))
    style = STYLE + formatter.get_style_defs()
    (OUT / PAGES[source]).write_text(
        SHELL.format(title=html.escape(title), style=style, links=bar, body=body), encoding="utf-8"
    )


def write_examples() -> None:
    """All examples on one page, each with its source."""
    parts = ["# Examples\n\nEach runs as it is: `python examples/demo.py`."]
    for name in EXAMPLES:
        code = (ROOT / "examples" / name).read_text(encoding="utf-8")
        parts.append(f"## {name}\n\n```python\n{code}\n```")
    write_page("examples", "Examples", "\n\n".join(parts))


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    pdoc.render.configure(docformat="numpy", search=True)
    for module in (maxmargin, maxmargin.data, maxmargin.vision):
        for name in module.__all__:
            setattr(module, name, getattr(module, name))  # imported when first used; pdoc looks without using
    pdoc.pdoc("maxmargin", "maxmargin.protocols", "maxmargin.plots", output_directory=OUT)
    for source in PAGES:
        path = ROOT / source
        if path.suffix == ".md" and path.exists():
            write_page(source, f"maxmargin: {path.stem.lower()}", path.read_text(encoding="utf-8"))
    write_examples()
    print(f"Documentation: {OUT.relative_to(ROOT)}/index.html")


if __name__ == "__main__":
    main()
