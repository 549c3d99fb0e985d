#!/usr/bin/env python3
"""Describe a CSV file: format, columns, types, gaps and oddities.

Reads the rows once and keeps a bounded amount in memory, so size does not
matter. Beyond the bounds distinct counts say "more than", quantiles come from
a random sample, and repeated rows are looked for among the first million.
Exit code: 0 done, 2 wrong use or unreadable input.
"""
import argparse
import codecs
import csv
import io
import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter

NULLS = {"", "na", "n/a", "#n/a", "nan", "null", "none", "nil"}
PATTERNS = (  # the first that matches the whole cell names its kind
    ("integer", re.compile(r"[-+]?(?:0|[1-9]\d*)")),
    ("number", re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?:\.\d*)?[eE][-+]?\d+)")),
    ("code", re.compile(r"0\d+")),  # leading zeros: a code, not a quantity
    ("boolean", re.compile(r"true|false|yes|no", re.I)),
    ("date", re.compile(r"\d{4}-\d\d-\d\d")),
    ("datetime", re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?")),
    ("local date", re.compile(r"\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)")),
    ("formatted number", re.compile(r"[-+(]?\s?[$€£¥]?\s?[-+]?\d{1,3}(?:[ ,.'\u00a0]\d{3})*(?:[.,]\d+)?\s?[%€£$¥]?\)?")),
)
WIDER = {frozenset(("integer", "number")): "number", frozenset(("date", "datetime")): "datetime",
         frozenset(("integer", "code")): "code"}


def open_table(path, encoding=None, delimiter=None):
    """Open a CSV file and find out what was not given; return (row iterator, encoding, delimiter)."""
    if path == "-":  # a pipe cannot be rewound, a temporary file can
        raw = tempfile.TemporaryFile()
        shutil.copyfileobj(sys.stdin.buffer, raw)
        raw.seek(0)
    else:
        raw = open(path, "rb")
    head = raw.read(1 << 18)
    raw.seek(0)
    if not encoding:
        if head.startswith(codecs.BOM_UTF8):
            encoding = "utf-8-sig"
        elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = "utf-16"
        else:
            try:  # not final: the head may end inside a character
                codecs.getincrementaldecoder("utf-8")().decode(head)
                encoding = "utf-8"
            except UnicodeDecodeError:
                encoding = "cp1252"
    if not delimiter:
        sample = codecs.getincrementaldecoder(encoding)("replace").decode(head)
        lines = sample.splitlines(True)[:200]
        delimiter = max(",;\t|", key=lambda d: _consistency(lines[:-1] or lines, d))
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter, delimiter)
    csv.field_size_limit(1 << 30)
    text = io.TextIOWrapper(raw, encoding=encoding, errors="replace", newline="")
    return csv.reader(text, delimiter=delimiter), encoding, delimiter


def _consistency(lines, delimiter):
    """How well a delimiter explains the lines: share of rows with the commonest width, then that width."""
    widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
    width, rows = widths.most_common(1)[0] if widths else (1, 0)
    return (width > 1) * rows / max(1, sum(widths.values())), width


class Column:
    def __init__(self, name, rng, limit):
        self.name, self.rng, self.limit = name, rng, limit
        self.count = self.padded = self.replaced = 0
        self.nulls, self.kinds, self.examples, self.values = Counter(), Counter(), {}, Counter()
        self.overflow = False
        self.low = self.high = None
        self.numbers, self.total, self.sample = 0, 0.0, []

    def add(self, cell, line):
        self.count += 1
        value = cell.strip()
        self.padded += value != cell
        self.replaced += "\ufffd" in value
        if value.lower() in NULLS:
            self.nulls[value] += 1
            return
        kind = next((k for k, p in PATTERNS if p.fullmatch(value)), "text")
        self.kinds[kind] += 1
        self.examples.setdefault(kind, {"value": value[:60], "line": line})
        if value in self.values or len(self.values) < self.limit:
            self.values[value] += 1
        else:
            self.overflow = True
        if kind in ("integer", "number"):
            number = float(value)
            self.numbers += 1
            self.total += number
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)
            if len(self.sample) < self.limit:
                self.sample.append(number)
            else:  # reservoir sampling: every number has the same chance to stay
                slot = self.rng.randrange(self.numbers)
                if slot < self.limit:
                    self.sample[slot] = number

    def report(self, top):
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else \
            WIDER.get(frozenset(self.kinds), "mixed" if self.kinds else "empty")
        nulls = sum(self.nulls.values())
        out = {"name": self.name, "type": kind, "nulls": nulls,
               "distinct": len(self.values), "distinct_is_minimum": self.overflow,
               "top": [{"value": v[:60], "count": n} for v, n in self.values.most_common(top)]}
        if self.numbers:
            ordered = sorted(self.sample)
            out.update(min=self.low, max=self.high, mean=self.total / self.numbers, sampled=self.numbers > len(ordered),
                       quantiles={"%d%%" % q: ordered[round(q / 100 * (len(ordered) - 1))] for q in (5, 25, 50, 75, 95)})
        elif kind in ("date", "datetime") and not self.overflow:
            out.update(min=min(self.values), max=max(self.values))
        issues = out["issues"] = []
        if kind == "mixed":
            out["kinds"] = {k: dict(self.examples[k], count=n) for k, n in self.kinds.most_common()}
            issues.append("several kinds of value: " + ", ".join(
                "%d %s (line %d: %r)" % (k["count"], name, k["line"], k["value"]) for name, k in out["kinds"].items()))
        elif kind == "code":
            issues.append("leading zeros: keep as text")
        elif kind == "local date":
            issues.append("dates are not ISO: find out whether day or month comes first")
        elif kind == "formatted number":
            issues.append("numbers carry separators or units: clean before calculating")
        if self.padded:
            issues.append("cells with spaces around the value: %d" % self.padded)
        if self.replaced:
            issues.append("cells with bytes that the encoding does not explain (try --encoding): %d" % self.replaced)
        if len(self.nulls) > 1 or nulls != self.nulls[""]:
            issues.append("missing values are spelt " + ", ".join("%r: %d" % n for n in self.nulls.most_common()))
        same = len(self.values) - len({v.casefold() for v in self.values})
        if same:
            issues.append("values that differ from another one in case only: %d" % same)
        if self.count and nulls == self.count:
            issues.append("no values at all")
        elif len(self.values) == 1 and not nulls and self.count > 1:
            issues.append("the same value in every row")
        return out


def profile(path, encoding=None, delimiter=None, header=True, limit=10000, top=5):
    """The profile of a file as a dict. Raises OSError, LookupError (encoding), csv.Error."""
    rows, encoding, delimiter = open_table(path, encoding, delimiter)
    rng, columns, seen = random.Random(0), [], set()  # a fixed seed: the same file gives the same report
    count = duplicates = blank = ragged = 0
    first_ragged = None
    for row in rows:
        if not any(cell.strip() for cell in row):
            blank += 1
            continue
        if not columns:
            names = [c.strip() for c in row] if header else ["column %d" % i for i in range(1, len(row) + 1)]
            columns = [Column(n, rng, limit) for n in names]
            if header:
                continue
        count += 1
        if len(row) != len(columns):
            ragged += 1
            first_ragged = first_ragged or (rows.line_num, len(row))
        if len(seen) < 100 * limit:
            key = hash(tuple(row))
            duplicates += key in seen
            seen.add(key)
        for column, cell in zip(columns, row):
            column.add(cell, rows.line_num)
    issues = []
    names = Counter(c.name for c in columns)
    for name in (n for n, k in names.items() if k > 1 or not n):
        issues.append("column name %r stands %d times" % (name, names[name]) if name else "a column without a name")
    if ragged:
        issues.append("rows that do not have %d fields: %d (the first is line %d with %d)" % (
            len(columns), ragged, *first_ragged))
    if duplicates:
        issues.append("rows that repeat an earlier row: %d" % duplicates)
    return {"file": path, "encoding": encoding, "delimiter": delimiter, "rows": count, "blank_rows": blank,
            "duplicate_rows": duplicates, "issues": issues, "columns": [c.report(top) for c in columns]}


def show(p):
    print("%s: %d rows, %d columns, encoding %s, delimiter %r" % (
        p["file"], p["rows"], len(p["columns"]), p["encoding"], p["delimiter"]))
    for issue in p["issues"]:
        print("  ! " + issue)
    for c in p["columns"]:
        print("\n%s: %s, %d nulls, %s%d distinct" % (
            c["name"], c["type"], c["nulls"], "more than " * c["distinct_is_minimum"], c["distinct"]))
        if "mean" in c:
            print("  min %.10g, mean %.10g, max %.10g; quantiles%s %s" % (
                c["min"], c["mean"], c["max"], " (sampled)" * c["sampled"],
                ", ".join("%s %.10g" % q for q in c["quantiles"].items())))
        elif "min" in c:
            print("  from %s to %s" % (c["min"], c["max"]))
        if c["top"] and c["top"][0]["count"] > 1:
            print("  most frequent: " + ", ".join("%r %d" % (t["value"], t["count"]) for t in c["top"]))
        for issue in c["issues"]:
            print("  ! " + issue)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="CSV file; - is standard input")
    parser.add_argument("--encoding", help="default: found out from the first 256 KiB")
    parser.add_argument("--delimiter", help="default: the most consistent of comma, semicolon, tab and |")
    parser.add_argument("--no-header", action="store_true", help="the first row is data")
    parser.add_argument("--limit", type=int, default=10000, help="values kept per column (default %(default)s)")
    parser.add_argument("--top", type=int, default=5, help="frequent values shown (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    try:
        result = profile(args.file, args.encoding, args.delimiter, not args.no_header, max(1, args.limit), args.top)
    except (OSError, LookupError, TypeError, csv.Error) as e:
        parser.exit(2, "profile_csv: %s: %s\n" % (args.file, e))
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        show(result)


if __name__ == "__main__":
    main()
