"""Prints one row of README.md's table, of the files that run left.

    row.py PROGRAM TOPOLOGY PREFIX
"""
import glob
import json
import re
import sys


def remote(run):
    """A lab run's remote DRAM accesses: in percent of all, and in thousands."""
    if not run["stdout_same"]:
        sys.exit(f"{sys.argv[1:]}: {run['name']} printed something else")
    matrix = run["matrix"]
    return run["remote_dram_pct"], (sum(map(sum, matrix)) - sum(row[i] for i, row in enumerate(matrix))) / 1000


def main(program, topology, prefix):
    def load(name):
        return json.load(open(f"{prefix}.{name}.json"))

    def predicted(name):
        return float(re.search(r"-> (?:< )?([\d.]+) % predicted", open(f"{prefix}.{name}.said").read())[1])

    def counted(name, run):
        """The mean of all boots: of the percentages and of the thousands."""
        boots = []
        for file in glob.glob(f"{prefix}.{name}.*.json"):
            boots += [remote(r) for r in json.load(open(file))["runs"] if r["name"] == run]
        return [sum(column) / len(boots) for column in zip(*boots)]

    def best(name):
        return load(name)["best_placement_remote_dram_pct"]

    default, plan, api = counted("lab", "default"), counted("lab", "plan"), counted("labapi", "default")
    print(f"| {program.replace(':', ', ')} | {topology} | {load('profile')['remote_dram_pct']:.1f}, {default[0]:.1f} "
          f"| {best('again'):.1f} | {predicted('pages'):.1f} | {predicted('plan'):.1f}, {best('planned'):.1f}, {plan[0]:.1f} "
          f"| {load('api')['remote_dram_pct']:.1f}, {api[0]:.1f} "
          f"| {default[1]:.0f} -> {plan[1]:.0f}, {api[1]:.0f} |", flush=True)


main(*sys.argv[1:])
