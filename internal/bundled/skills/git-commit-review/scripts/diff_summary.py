#!/usr/bin/env python3
"""Summarise a Git diff: what changes, where, of which kind, and what to look at.

  git diff --cached | diff_summary.py
  git show -M HEAD | diff_summary.py --json
  git diff --numstat main...topic | diff_summary.py

Reads a patch or the output of --numstat from a file or standard input; only a
patch shows content, so only there are lines inspected. Values that look like
credentials are located, never printed.
Exit code: 0 done, 1 a conflict marker or possible credential was added,
2 wrong use or no diff.
"""
import argparse
import json
import re
import sys
from collections import OrderedDict

KINDS = (  # the first that matches the path names its kind
    ("generated", re.compile(r"(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|go\.sum|Cargo\.lock|poetry\.lock|uv\.lock|"
                             r"Gemfile\.lock)$|(^|/)(dist|vendor|node_modules)/|\.(min\.js|min\.css|map|pb\.go|snap)$|_generated\.")),
    ("test", re.compile(r"(^|/)(tests?|testdata|__tests__|spec)/|_test\.\w+$|(^|/)test_[^/]*$|\.(test|spec)\.\w+$")),
    ("build", re.compile(r"(^|/)(\.github|\.gitlab|\.circleci|ci)/|(^|/)(Makefile|Dockerfile[^/]*|go\.mod|package\.json|"
                         r"pyproject\.toml|setup\.(py|cfg)|Cargo\.toml|requirements[^/]*\.txt|\.gitignore|\.gitattributes)$")),
    ("docs", re.compile(r"(^|/)docs?/|\.(md|rst|adoc|txt)$|(^|/)(README|CHANGELOG|LICENSE|NOTICE)[^/]*$", re.I)),
    ("config", re.compile(r"\.(ya?ml|toml|ini|cfg|conf|env|json|properties)$|(^|/)\.[^/]+$")),
    ("code", re.compile(r"")),
)
SIGNS = (  # what an added line may show; True: serious
    ("conflict marker", True, re.compile(r"^(<{7}|>{7}|\|{7})( |$)")),
    ("possible credential", True, re.compile(
        r"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|xox[abpr]-[A-Za-z0-9-]{10}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
        r"|(?i:password|passwd|secret|token|api_?key)[\"']?\s*[:=]\s*[\"'](?![<{$*%])[^\"'\s]{8,}[\"']")),
    ("debugging left in", False, re.compile(
        r"\bconsole\.(log|debug)\(|^\s*debugger;?\s*$|\bpdb\.set_trace\(|^\s*breakpoint\(\)|\bbinding\.pry\b|\bvar_dump\(|\bdbg!\(")),
    ("test switched off or singled out", False, re.compile(
        r"\b(it|describe|test)\.(only|skip)\(|\bt\.Skip(f|Now)?\(|@pytest\.mark\.(skip|xfail)|@unittest\.skip|@(Ignore|Disabled)\b|#\[ignore\]")),
    ("open note", False, re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")),
    ("trailing space", False, re.compile(r"\S[ \t]+$")),
)


class File:
    def __init__(self, path):
        self.path, self.old, self.status = path, None, "modified"
        self.added = self.deleted = 0
        self.binary, self.plus, self.minus, self.places = False, [], [], []

    def kind(self):
        return next(kind for kind, pattern in KINDS if pattern.search(self.path))

    def only_whitespace(self):
        def squeeze(lines):
            return "".join("".join(lines).split())
        return bool(self.plus) and squeeze(self.plus) == squeeze(self.minus)

    def report(self):
        out = OrderedDict(path=self.path, status=self.status, kind=self.kind(), added=self.added, deleted=self.deleted)
        if self.old:
            out["old_path"] = self.old
        for name, value in (("binary", self.binary), ("only_whitespace", self.only_whitespace())):
            if value:
                out[name] = True
        return out


def unquote(path):
    """A path as Git prints it: C-style quotes, and the a/ or b/ in front."""
    path = path.split("\t")[0]
    if path.startswith('"') and path.endswith('"'):
        raw = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), path[1:-1].encode("utf-8", "surrogateescape"))
        path = re.sub(rb"\\(.)", lambda m: {b"t": b"\t", b"n": b"\n"}.get(m[1], m[1]), raw).decode("utf-8", "replace")
    return path


def strip_side(path):
    path = unquote(path)
    return path[2:] if path[:2] in ("a/", "b/", "i/", "w/", "c/", "o/") else path


def read_patch(lines):
    """The files of a patch. Hunk headers say how many lines follow, so content is never taken for a header."""
    files, current, old_left, new_left, number = [], None, 0, 0, 0
    for line in lines:
        if old_left > 0 or new_left > 0:
            mark, text = line[:1], line[1:]
            if mark == "+":
                current.added += 1
                current.plus.append(text)
                current.places += [(number, name, serious) for name, serious, p in SIGNS if p.search(text)
                                   and not (name == "trailing space" and current.kind() == "docs")]
            elif mark == "-":
                current.deleted += 1
                current.minus.append(text)
            old_left -= mark in ("-", " ", "")
            new_left -= mark in ("+", " ", "")
            number += mark in ("+", " ", "")
            continue
        hunk = re.match(r"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line)
        if hunk and current:
            old_left, number, new_left = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
        elif line.startswith("diff --git "):
            rest = line[len("diff --git "):]
            same = re.fullmatch(r'(?:"?a/(.*)"?) "?b/\1"?', rest)
            current = File(same[1] if same else strip_side(rest.split(" ")[-1]))
            files.append(current)
        elif line.startswith(("diff --cc ", "diff --combined ")):
            current = File(unquote(line.split(" ", 2)[2]))
            current.status = "merged"
            files.append(current)
        elif line.startswith("--- ") and (not current or current.plus or current.minus):
            current = File(strip_side(line[4:]))  # a patch that was not made by Git
            files.append(current)
        elif line.startswith("+++ ") and current and line[4:].split("\t")[0] != "/dev/null":
            current.path = strip_side(line[4:])
        elif current and line.startswith(("new file", "deleted file")):
            current.status = "added" if line[0] == "n" else "deleted"
        elif current and line.startswith(("rename from ", "copy from ")):
            current.status, current.old = ("renamed", "copied")[line[0] == "c"], unquote(line.split(" ", 2)[2])
        elif current and line.startswith(("rename to ", "copy to ")):
            current.path = unquote(line.split(" ", 2)[2])
        elif current and line.startswith(("Binary files ", "GIT binary patch")):
            current.binary = True
        elif current and line.startswith("old mode ") and current.status == "modified":
            current.status = "mode changed"
    for f in files:
        if f.status == "mode changed" and (f.plus or f.minus):
            f.status = "modified"
    return files


def read_numstat(lines):
    files = []
    for m in filter(None, (re.match(r"(\d+|-)\t(\d+|-)\t(.+)", line) for line in lines)):
        f = File(unquote(m[3]))
        if " => " in f.path:  # src/{old => new}/x.go, or old => new
            f.status, path = "renamed", f.path
            f.old = re.sub(r"\{(.*?) => (.*?)\}", r"\1", path).replace("//", "/").split(" => ")[0]
            f.path = re.sub(r"\{(.*?) => (.*?)\}", r"\2", path).replace("//", "/").split(" => ")[-1]
        f.binary = m[1] == "-"
        f.added, f.deleted = (0, 0) if f.binary else (int(m[1]), int(m[2]))
        files.append(f)
    return files


def table(files, label):
    """Files, added and deleted lines by label, largest first."""
    rows = {}
    for f in files:
        row = rows.setdefault(label(f), OrderedDict(files=0, added=0, deleted=0))
        row["files"] += 1
        row["added"] += f.added
        row["deleted"] += f.deleted
    return OrderedDict(sorted(rows.items(), key=lambda r: (-r[1]["added"] - r[1]["deleted"], r[0])))


def summarise(text):
    """The summary of a diff as a dict, None when the text holds no diff."""
    lines = text.replace("\r\n", "\n").split("\n")  # not splitlines: it also splits inside lines
    files = read_patch(lines) or read_numstat(lines)
    if not files:
        return None
    return OrderedDict(
        files=[f.report() for f in files], added=sum(f.added for f in files), deleted=sum(f.deleted for f in files),
        kinds=table(files, File.kind), areas=table(files, lambda f: "/".join(f.path.split("/")[:-1][:2]) or "."),
        look_at=[OrderedDict(path=f.path, line=n, what=what, serious=serious) for f in files for n, what, serious in f.places])


def counts(files, added, deleted):
    return "%d file%s, +%d -%d" % (files, "s" * (files != 1), added, deleted)


def show(s):
    print(counts(len(s["files"]), s["added"], s["deleted"]))
    for f in s["files"]:
        notes = [f["kind"]] + [n.replace("_", " ") for n in ("binary", "only_whitespace") if n in f]
        print("  %-12s +%-5d -%-5d %s%s  (%s)" % (
            f["status"], f["added"], f["deleted"], f["old_path"] + " -> " if "old_path" in f else "", f["path"], ", ".join(notes)))
    for title in ("kinds", "areas"):
        print("%s: %s" % (title, "; ".join("%s (%s)" % (k, counts(**r)) for k, r in s[title].items())))
    for place in s["look_at"]:
        print("%s %s:%d: %s" % ("!!" if place["serious"] else " !", place["path"], place["line"], place["what"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="-", help="a patch or --numstat output; default: standard input")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    try:
        with (open(args.file, "rb") if args.file != "-" else sys.stdin.buffer) as f:
            text = f.read().decode("utf-8", "replace")
    except OSError as e:
        parser.exit(2, "diff_summary: %s\n" % e)
    summary = summarise(text)
    if summary is None:
        parser.exit(2, "diff_summary: no diff in the input; for staged changes use: git diff --cached\n")
    if args.json:
        print(json.dumps(summary, indent=2))
    else:
        show(summary)
    sys.exit(1 if any(p["serious"] for p in summary["look_at"]) else 0)


if __name__ == "__main__":
    main()
