"""Detectors: images a second, training and its memory, beside dlib's; and the pieces that detection is made of.

    python benchmarks/detection.py [--quick] [--only detection,training,pieces] [--repeats 5] [--cache FOLDER]
    python benchmarks/detection.py --report

Needs pets_cat_heads.tar and pets_heads.csv in the folder named by MAXMARGIN_DATA; dlib is compared with where it is
installed (maxmargin[bench]). Each cell goes to results/detection.json as soon as it is measured; at the end, or alone
with --report, tables are made of that file. Images are kept in --cache, by default for this run only.
"""

import argparse
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import datasets
import detection_report
import own_process
import results

PARTS = ("detection", "training", "pieces")
BREED = "Siamese"


def fresh(job: str, **task: Any) -> dict[str, Any]:
    return own_process.fresh(str(Path(__file__).with_name("detection_job.py")), job, **task)


def unpacked(cache: Path) -> Path:
    """The folder of the images: BREED_NUMBER.jpg."""
    folder = cache / "pets_cat_heads"
    if not folder.is_dir():
        missing = [
            name for name in ("pets_cat_heads.tar", "pets_heads.csv") if not (datasets.folder() / name).is_file()
        ]
        if missing:
            sys.exit(f"This benchmark needs {missing} in {datasets.folder()}, the folder named by MAXMARGIN_DATA.")
        with (
            tempfile.TemporaryDirectory(dir=cache) as aside,
            tarfile.open(datasets.folder() / "pets_cat_heads.tar") as opened,
        ):
            opened.extractall(Path(aside) / folder.name, filter="data")
            (Path(aside) / folder.name).rename(folder)
    return folder


def measured(part: str, common: dict[str, Any], repeats: int, quick: bool) -> dict[str, Any]:
    if part != "training":
        return fresh(part, **common, images=6 if quick else 40, repeats=repeats)
    task = common | ({"own": 8, "others": 12} if quick else {"own": 50, "others": 150})
    sides = {side: fresh("training", **task, side=side) for side in detection_report.SIDES}
    return sides | {"breed": BREED, "n_parts": 6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few images, into a file of its own")
    parser.add_argument("--only", default=",".join(PARTS), help="what to measure, separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path, help="folder for images (default: a temporary one)")
    parser.add_argument("--report", action="store_true", help="only make tables of the file")
    args = parser.parse_args()
    wanted = [] if args.report else [part for part in args.only.split(",") if part]
    if set(wanted) - set(PARTS) or args.repeats < 1:
        parser.error(f"--only takes some of {','.join(PARTS)}, and --repeats at least 1")
    found = results.Results(results.FOLDER / ("detection-quick.json" if args.quick else "detection.json"))
    with tempfile.TemporaryDirectory() as aside:
        cache = args.cache or Path(aside)
        cache.mkdir(parents=True, exist_ok=True)
        for part in wanted:
            print(part, flush=True)
            boxes = str(datasets.folder() / "pets_heads.csv")
            common = {"folder": str(unpacked(cache)), "boxes": boxes, "breed": BREED}
            found.put("libraries", fresh("libraries"))
            found.put(part, measured(part, common, args.repeats, args.quick))
            detection_report.write(found)
    detection_report.write(found)
    print(found.path.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
