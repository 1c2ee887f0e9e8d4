"""Bags of instances: LatentSVC side by side with a loop that mines and retrains scikit-learn's LinearSVC.

    python benchmarks/latent.py [--quick] [--only dense,text] [--repeats 3] [--resume]
    python benchmarks/latent.py --report

All bags are generated. Each cell goes to results/latent.json as soon as it is measured; at the end, or alone with
--report, tables are made of that file.
"""

import argparse
from pathlib import Path
from typing import Any

import latent_report
import own_process
import results

CS = {"dense": [0.1, 1.0, 10.0], "text": [1.0, 10.0, 100.0]}
PEER_TOLERANCES = [1e-1, 1e-2]
OURS = ("maxmargin", "maxmargin, multi-fold")
OUR_TOLERANCES = [1e-2, 1e-3]

N_STATES, KEPT = 11, 8  # of each of two classes; of all
SIZES = [(20_000, 10), (20_000, 100), (2_000, 1_000)]  # bags, features

Cell = dict[str, Any]


def fresh(job: str = "fit", **task: Any) -> Cell:
    return own_process.fresh(str(Path(__file__).with_name("latent_job.py")), job, **task)


def bags(data: str, C: float, negatives: str, args: argparse.Namespace) -> Cell:
    """All settings in turns, so that they share the machine's good and bad minutes; long ones run once."""
    task = {"data": data, "n": args.bags, "C": C, "negatives": negatives}
    settings = [(who, tol) for who in OURS for tol in OUR_TOLERANCES]
    settings += [("scikit-learn", tol) for tol in PEER_TOLERANCES]
    runs: dict[str, list[Cell]] = {}
    for _ in range(args.repeats):
        for who, tol in settings:
            known = runs.setdefault(f"{who} {tol:g}", [])
            if known and known[0]["wall"] > args.budget:
                continue
            run = fresh(who=who, tol=tol, **task)
            known.append(run | {"who": who, "tol": tol})
            print(f"    {who:14s} tol {tol:<6g} {run['seconds']:7.2f} s  F {run['objective']:.6g}", flush=True)
    return task | {"runs": runs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small bags, once, into a file of its own")
    parser.add_argument("--only", default="dense,text", help="kinds of data, separated by commas")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds beyond which a run is not repeated")
    parser.add_argument("--resume", action="store_true", help="leave cells alone that the file has")
    parser.add_argument("--report", action="store_true", help="only make tables of the file")
    args = parser.parse_args()
    args.bags = 200 if args.quick else 2000
    args.repeats = 1 if args.quick else args.repeats
    found = results.Results(results.FOLDER / ("latent-quick.json" if args.quick else "latent.json"))
    for data in [] if args.report else [kind for kind in args.only.split(",") if kind]:
        for negatives in ("bag", "instances"):
            for C in CS[data]:
                key = f"bags/{data}/{negatives}/{C:g}"
                if args.resume and key in found:
                    continue
                print(key, flush=True)
                found.put(key, bags(data, C, negatives, args))
                latent_report.write(found)
    for n, d in [] if args.report else SIZES:
        task = {"n": n // (10 if args.quick else 1), "n_states": N_STATES, "d": d, "kept": KEPT}
        found.put(f"states/{d}", task | fresh("predict", **task, repeats=10))
    latent_report.write(found)


if __name__ == "__main__":
    main()
