"""How large the package is, and how far a row of data walks: ``python benchmarks/size.py [root of a checkout]``.

Code lines have no blanks, comments and docstrings. Files that a row passes are those with a Python function that runs
while ``LinearSVC`` is fitted; compiled kernels count where Python calls them, workers run inside this process.
"""

import ast
import statistics
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
BLOCKS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(path: Path, tree: ast.Module) -> set[int]:
    """Numbers of the lines with a token that is neither layout, comment nor docstring."""
    with tokenize.open(path) as file:
        tokens = [t for t in tokenize.generate_tokens(file.readline) if t.type not in LAYOUT]
    lines = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, BLOCKS) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def files_passed(*data, **run) -> int:
    import maxmargin as mm

    def fit() -> None:
        mm.LinearSVC(random_state=0, solver="dual_coordinate").fit(*data, **run)

    seen: set[str] = set()
    fit()  # imports and compiling are no part of the way
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code.co_filename))
    fit()
    sys.setprofile(None)
    return sum(Path(name).is_relative_to(ROOT / "src" / "maxmargin") for name in seen)


def way_of_a_row() -> list[int]:
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]
    import numpy as np
    from inline_transport import Inline

    import maxmargin as mm

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] + rng.normal(size=400) > 0
    with tempfile.TemporaryDirectory() as folder:
        mm.data.convert(mm.data.open(X, labels=y), Path(folder) / "shards", batch_bytes=2**12)
        source = mm.data.open(Path(folder) / "shards")
        return [files_passed(X, y), files_passed(source), files_passed(source, cluster=Inline(2))]


if __name__ == "__main__":
    trees = {path: ast.parse(path.read_text()) for path in (ROOT / "src").rglob("*.py")}
    code = {path: code_lines(path, tree) for path, tree in trees.items()}
    nodes = [(path, node) for path, tree in trees.items() for node in ast.walk(tree)]
    functions = [(path, range(f.lineno, f.end_lineno + 1)) for path, f in nodes if isinstance(f, ast.FunctionDef)]
    sizes = sorted(len(code[path].intersection(lines)) for path, lines in functions)
    used = Counter(node.id for _, node in nodes if isinstance(node, ast.Name))
    protocols = ast.unparse(trees[ROOT / "src/maxmargin/protocols.py"]).count("Protocol)")
    tests = sum(len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py"))
    print(f"code lines in src {sum(map(len, code.values()))} in {len(code)} files")
    print(f"functions: median {statistics.median(sizes):.0f}, 90 % {sizes[len(sizes) * 9 // 10]}, longest {sizes[-1]}")
    print(f"hasattr + getattr {used['hasattr'] + used['getattr']}, Any {used['Any']}")
    print(f"protocols {protocols}, lines of tests {tests}")
    print("files a row passes, in memory / from a file / on workers:", " / ".join(map(str, way_of_a_row())))
