"""Finds the days of a CSV whose value is three deviations or more from that of the others."""
import csv, os, statistics, sys

path, column = sys.argv[1:3]
with open(path, encoding="utf-8") as f:
    rows = [(r[0], float(r[1])) for r in ((next(iter(row.values())), row[column]) for row in csv.DictReader(f))]

odd = []
for i, (day, value) in enumerate(rows):
    others = [v for j, (_, v) in enumerate(rows) if j != i]
    mean, dev = statistics.mean(others), statistics.stdev(others)
    if abs(value - mean) >= 3 * dev:
        odd.append((day, value, mean))

lines = ["# %s 异动报告" % column, "", "共 %d 天，异常 %d 天。" % (len(rows), len(odd)), ""]
lines += ["- %s：%.0f，均值 %.0f，偏离 %+.0f%%" % (day, value, mean, (value / mean - 1) * 100) for day, value, mean in odd]
report = "\n".join(lines) + "\n"
with open(os.path.join(os.environ["LOADOUT_OUT"], "report.md"), "w", encoding="utf-8") as f:
    f.write(report)
print(report)
