"""Scenes: descriptors beside OpenCV's, words beside scikit-learn's search, learning, and labels of grids.

    python benchmarks/scenes.py [--quick] [--only sift,words,learning,grids] [--repeats 5] [--cache FOLDER]
    python benchmarks/scenes.py --report

Needs scene15.tar in the folder named by MAXMARGIN_DATA and the packages of maxmargin[bench,vision]. Each cell goes to
results/scenes.json as soon as it is measured; at the end, or alone with --report, tables are made of that file. Images
and the histograms that learning begins with are kept in --cache, by default for this run only.
"""

import argparse
import os
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import datasets
import own_process
import results
import scenes_report

PARTS = ("sift", "words", "learning", "grids")


def fresh(job: str, **task: Any) -> dict[str, Any]:
    return own_process.fresh(str(Path(__file__).with_name("scenes_job.py")), job, **task)


def unpacked(cache: Path) -> Path:
    """The folder of the images: train/CLASS/NAME.jpg and test/CLASS/NAME.jpg."""
    folder = cache / "scene15"
    if not folder.is_dir():
        archive = datasets.folder() / "scene15.tar"
        if not archive.is_file():
            sys.exit(f"This benchmark needs scene15.tar in {archive.parent}, the folder named by MAXMARGIN_DATA.")
        with tempfile.TemporaryDirectory(dir=cache) as aside, tarfile.open(archive) as opened:
            opened.extractall(Path(aside) / "scene15", filter="data")
            (Path(aside) / "scene15").rename(folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few images, into a file of its own")
    parser.add_argument("--only", default=",".join(PARTS), help="what to measure, separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="folder for images and histograms (default: a temporary one)")
    parser.add_argument("--report", action="store_true", help="only make tables of the file")
    args = parser.parse_args()
    wanted = [] if args.report else [part for part in args.only.split(",") if part]
    if set(wanted) - set(PARTS) or args.repeats < 1:
        parser.error(f"--only takes some of {','.join(PARTS)}, and --repeats at least 1")
    found = results.Results(results.FOLDER / ("scenes-quick.json" if args.quick else "scenes.json"))
    with tempfile.TemporaryDirectory() as aside:
        cache = args.cache or Path(aside)
        cache.mkdir(parents=True, exist_ok=True)
        common = {"repeats": args.repeats}
        images = (
            {"sift": 200, "words": 200, "learning": None}
            if not args.quick
            else {"sift": 20, "words": 20, "learning": 300}
        )
        for part in wanted:
            print(part, flush=True)
            task: dict[str, Any] = dict(common)
            if part in images:
                task |= {"folder": str(unpacked(cache)), "images": images[part]}
            if part == "learning":
                task |= {"cache": str(cache / "features"), "threads": min(2, os.cpu_count() or 1)}
            if part == "grids":
                task["grids"] = 2 if args.quick else 5
            found.put(part, fresh(part, **task))
            scenes_report.write(found)
    scenes_report.write(found)


if __name__ == "__main__":
    main()
