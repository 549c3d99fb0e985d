#!/usr/bin/env python3
"""Group the rows of a CSV file and calculate per group.

  aggregate_csv.py sales.csv --by region --sum amount --mean amount
  aggregate_csv.py sales.csv --by region,year --distinct customer --json
  aggregate_csv.py sales.csv --where status=paid --sum amount

Sums use decimal arithmetic, so 0.1 + 0.2 is 0.3. Cells that are empty or not
plain numbers are left out of sum, mean, min and max; how many, and the first
one, is said on standard error, or stops the run with --strict.
Exit code: 0 done, 1 refused by --strict, 2 wrong use or unreadable input.
"""
import argparse
import csv
import json
import sys
from decimal import Decimal, InvalidOperation

sys.dont_write_bytecode = True  # the skill's folder stays as it is
from profile_csv import NULLS, open_table  # noqa: E402  (a file of the same folder)

NUMERIC = ("sum", "mean", "min", "max")


class Group:
    """What is known about the rows that share a key."""

    def __init__(self):
        self.rows = 0
        self.numbers = {}  # column: [count, sum, min, max]
        self.distinct = {}  # column: set of values

    def add_number(self, column, value):
        n = self.numbers.setdefault(column, [0, Decimal(0), value, value])
        n[0] += 1
        n[1] += value
        n[2], n[3] = min(n[2], value), max(n[3], value)

    def result(self, wanted):
        out = {"count": self.rows}
        for what, column in wanted:
            count, total, low, high = self.numbers.get(column, (0, Decimal(0), None, None))
            out[what + "_" + column] = {
                "sum": total, "mean": total / count if count else None, "min": low, "max": high,
                "distinct": len(self.distinct.get(column, ())),
            }[what]
        return out


def aggregate(rows, by, wanted, where=()):
    """Read rows, the header first; return groups by key, and per (column, kind of gap) how many
    cells were left out with the line and text of the first. KeyError: there is no such column.
    """
    header = [name.strip() for name in next(rows, [])]

    def index(name):
        if name not in header:
            raise KeyError(name)
        return header.index(name)

    keys = [index(name) for name in by]
    filters = [(index(name), value) for name, value in where]
    numeric = {column: index(column) for what, column in wanted if what in NUMERIC}
    distinct = {column: index(column) for what, column in wanted if what == "distinct"}
    groups, skipped = {}, {}
    for row in rows:
        if not any(row):
            continue
        row = [cell.strip() for cell in row] + [""] * (len(header) - len(row))
        if any(row[i] != value for i, value in filters):
            continue
        group = groups.setdefault(tuple(row[i] for i in keys), Group())
        group.rows += 1
        for column, i in numeric.items():
            try:
                value = Decimal(row[i])
                if not value.is_finite():
                    raise InvalidOperation
            except InvalidOperation:
                kind = "missing" if row[i].lower() in NULLS else "not a number"
                first = skipped.setdefault((column, kind), [0, rows.line_num, row[i]])
                first[0] += 1
            else:
                group.add_number(column, value)
        for column, i in distinct.items():
            if row[i].lower() not in NULLS:
                group.distinct.setdefault(column, set()).add(row[i])
    return groups, skipped


def plain(value, digits):
    """A Decimal as text without exponent, rounded to at most so many digits after the point."""
    if not isinstance(value, Decimal):
        return "" if value is None else value
    if -value.as_tuple().exponent > digits:
        value = round(value, digits)
    return format(value, "f")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="CSV file with a header; - is standard input")
    parser.add_argument("--by", default="", metavar="COLUMN,...", help="group by these columns (default: one group)")
    for what in NUMERIC + ("distinct",):
        parser.add_argument("--" + what, action="append", default=[], metavar="COLUMN", help="repeatable")
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE",
                        help="only rows with this value; repeatable")
    parser.add_argument("--sort", metavar="NAME", help="order by this result column, greatest first (default: by group)")
    parser.add_argument("--digits", type=int, default=6, help="digits after the point (default %(default)s)")
    parser.add_argument("--strict", action="store_true", help="refuse cells that are neither empty nor numbers")
    parser.add_argument("--encoding", help="default: found out as by profile_csv.py")
    parser.add_argument("--delimiter", help="likewise")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of CSV; numbers stay text")
    args = parser.parse_args()
    by = [name.strip() for name in args.by.split(",") if name.strip()]
    wanted = [(what, column) for what in NUMERIC + ("distinct",) for column in getattr(args, what)]
    where = [tuple(part.strip() for part in w.split("=", 1)) for w in args.where]
    if any(len(w) != 2 for w in where):
        parser.error("--where needs COLUMN=VALUE")
    columns = by + ["count"] + ["%s_%s" % w for w in wanted]
    if args.sort and args.sort not in columns:
        parser.error("--sort: no result column %r; there are %s" % (args.sort, ", ".join(columns)))
    try:
        rows, encoding, delimiter = open_table(args.file, args.encoding, args.delimiter)
        groups, skipped = aggregate(rows, by, wanted, where)
    except KeyError as e:
        parser.exit(2, "aggregate_csv: no column %s; profile_csv.py lists the columns\n" % e)
    except (OSError, LookupError, TypeError, csv.Error) as e:
        parser.exit(2, "aggregate_csv: %s: %s\n" % (args.file, e))
    for (column, kind), (count, line, cell) in skipped.items():
        print("aggregate_csv: %s: %d cells left out, %s (first: line %d, %r)" % (column, count, kind, line, cell), file=sys.stderr)
    if args.strict and any(kind == "not a number" for _, kind in skipped):
        parser.exit(1, "aggregate_csv: refused because of --strict; clean the cells above first\n")
    table = [dict(zip(by, key), **group.result(wanted)) for key, group in sorted(groups.items())]
    if args.sort:
        table.sort(key=lambda r: (r[args.sort] is not None, r[args.sort]), reverse=True)
    table = [{c: plain(r[c], args.digits) for c in columns} for r in table]
    if args.json:
        print(json.dumps({"encoding": encoding, "delimiter": delimiter, "groups": table}, indent=2, ensure_ascii=False))
    else:
        out = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        out.writeheader()
        out.writerows(table)


if __name__ == "__main__":
    main()
