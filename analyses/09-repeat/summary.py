"""summary.py mean BASELINE...: the mean of the programs' remote percentages.
summary.py tables DIR TO: verdicts.tsv and parts.tsv of the baselines in DIR, one a run."""
import collections
import glob
import json
import re
import statistics
import sys


def percent(path):
    with open(path) as f:
        b = json.load(f)
    figures = {"program": b["program"]["remote_dram_pct"][0]}
    for kind in ("objects", "loops"):
        for x in b[kind]:
            figures[kind[:-1] + " " + x["name"]] = x["remote_dram_pct"][0]
    return figures


def tables(dir, to):
    verdicts = open(to + "/verdicts.tsv", "w")
    parts = open(to + "/parts.tsv", "w")
    print("program\truns\tmean\tsd\trange\tpass_2_above\tfail_2_below\tpass_of_3_runs\tfail_of_3_runs\tfails_against_1\tfails_against_3\tagainst", file=verdicts)
    print("program\tpart\tmean\tsd\trange", file=parts)
    for line in open(dir + "/counts"):
        program, *counts = line.split()
        runs = [p for p in glob.glob(dir + "/" + program.replace("/", ".") + ".*.base") if re.search(r"\.\d+\.base$", p)]
        values = collections.defaultdict(list)
        for path in runs:
            for name, pct in percent(path).items():
                values[name].append(pct)
        for name, v in sorted(values.items()):
            if len(v) < len(runs):
                continue
            row = [f"{statistics.mean(v):.2f}", f"{statistics.stdev(v):.3f}", f"{max(v) - min(v):.2f}"]
            if name == "program":
                print(program, len(v), *row, *counts, len(v) - 3, sep="\t", file=verdicts)
            else:
                print(program, name, *row, sep="\t", file=parts)


if sys.argv[1] == "mean":
    print(statistics.mean(percent(p)["program"] for p in sys.argv[2:]))
else:
    tables(sys.argv[2], sys.argv[3])
