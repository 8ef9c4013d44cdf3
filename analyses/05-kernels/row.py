"""Prints one row of README.md's table, of the files that run left in DIR.

    row.py KERNEL TOPOLOGY DIR
"""
import json
import re
import sys


def counted(run):
    """A lab run's remote DRAM accesses: in percent of all, and in thousands."""
    matrix = run["matrix"]
    return run["remote_dram_pct"], (sum(map(sum, matrix)) - sum(row[i] for i, row in enumerate(matrix))) / 1000


def main(kernel, topology, dir):
    def load(name):
        return json.load(open(f"{dir}/{name}.json"))

    before, api = load("report"), load("api.report")
    runs = {r["name"]: r for r in load("lab")["runs"]}
    default, plan, with_api = (counted(r) for r in (runs["default"], runs["plan"], load("api")["runs"][0]))
    said = open(f"{dir}/plan").read()
    predicted = re.search(r"-> ([\d.]+) % predicted", said)[1]
    bound = re.search(r"([\d.]+) % with every page on its best node", said)[1]
    print(f"| {kernel} | {topology} | {before['remote_dram_pct']:.1f}, {default[0]:.1f} "
          f"| {before['best_placement_remote_dram_pct']:.1f} | {predicted}, {bound}, {plan[0]:.1f} "
          f"| {api['remote_dram_pct']:.1f}, {with_api[0]:.1f} "
          f"| {default[1]:.0f} -> {plan[1]:.0f}, {with_api[1]:.0f} |", flush=True)


main(*sys.argv[1:])
