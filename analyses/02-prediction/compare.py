"""Prints one line: a plan's prediction and what the lab counted.

    compare.py NAME PLAN LAB.JSON
"""
import json
import re
import sys


def main(name, plan, lab):
    text = open(plan).read()
    before, after = (float(re.search(rf"remote_dram_pct_{x}: ([\d.]+)", text)[1]) for x in ("before", "after"))
    runs = {r["name"]: r for r in json.load(open(lab))["runs"]}
    default, planned = (runs[x]["remote_dram_pct"] for x in ("default", "plan"))
    on = runs["plan"].get("on_plan_pct")
    print(f"{name:20} {before:9.2f} {default:9.2f} {before - default:+7.2f}   "
          f"{after:9.2f} {planned:9.2f} {after - planned:+7.2f}  {'-' if on is None else f'{on:.1f} %'}", flush=True)


main(*sys.argv[1:])
