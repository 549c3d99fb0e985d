#!/usr/bin/env python3
"""Find references in a skill's Markdown that lead nowhere.

Looks at Markdown links and images, at src and href, and at paths in code such
as scripts/..., references/... or assets/... A path may be relative to the
skill's folder or to the file it stands in. Web addresses, anchors, absolute
paths and patterns (with <...>, {...}, $ or *) are not checked.
Exit code: 0 all references exist, 1 some do not, 2 wrong use.
"""
import argparse
import json
import os
import posixpath
import re
import sys
from urllib.parse import unquote

SKIP = {".git", "node_modules", "__pycache__"}
LINKS = (
    re.compile(r"!?\[[^\]]*\]\(\s*(?:<([^>\n]+)>|([^\s()<>]+(?:\([^\s()]*\)[^\s()]*)?))"),  # [text](path "title")
    re.compile(r"^ {0,3}\[[^\]^]+\]:\s*(?:<([^>\n]+)>|(\S+))", re.M),  # [label]: path
    re.compile(r"\b(?:src|href)\s*=\s*(?:\"([^\"\n]+)\"|'([^'\n]+)')", re.I),
)
BASE = r"(?:\{baseDir\}/|\$\{(?:CLAUDE_)?SKILL_DIR\}/|\./)"
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.M | re.S)
INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.S)


def tree(root):
    """All files and folders below root, as paths with forward slashes."""
    files, folders = set(), {"."}
    for here, names, leaves in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIP)
        rel = posixpath.normpath(os.path.relpath(here, root).replace(os.sep, "/"))
        folders.update(posixpath.normpath(posixpath.join(rel, n)) for n in names)
        files.update(posixpath.normpath(posixpath.join(rel, n)) for n in leaves)
    return files, folders


def references(text, top):
    """Yield (offset, path, how) for the references in a Markdown text; top are the skill's own folders."""
    hidden = list(text)
    code = [m.span() for m in FENCE.finditer(text)]
    for a, b in code:
        hidden[a:b] = "\n" * (b - a)
    code += [m.span(2) for m in INLINE.finditer("".join(hidden))]
    for a, b in code:
        hidden[a:b] = " " * (b - a)
    prose = "".join(hidden)  # links inside code are examples, not links
    for pattern in LINKS:
        for m in pattern.finditer(prose):
            group = 1 if m[1] else 2
            yield m.start(group), m[group], "link"
    folders = "|".join(sorted(map(re.escape, {"scripts", "references", "assets", *top})))
    path = re.compile(r"(?<![\w./<>$*{}@:-])(%s?(?:%s)/[\w.@+/-]*[\w/](?![\w<{*$-]|\.[\w<{*$]))" % (BASE, folders))
    for a, b in code:
        for m in path.finditer(text, a, b):
            yield m.start(1), m[1], "code"


def check(root):
    """Check one skill folder; return a dict with the broken references and the files nothing refers to."""
    files, folders = tree(root)
    top = {f.split("/")[0] for f in folders if f != "." and not f.startswith(".")}
    by_lower = {f.lower(): f for f in files | folders}
    broken, used, count = [], set(), 0
    for name in sorted(f for f in files if f.lower().endswith((".md", ".markdown"))):
        with open(os.path.join(root, *name.split("/")), encoding="utf-8", errors="replace") as f:
            text = f.read()
        for offset, raw, how in sorted(references(text, top)):
            target = re.sub("^" + BASE, "", unquote(raw.split("#")[0].split("?")[0]))
            if not target or re.match(r"[a-z][a-z0-9+.-]*:|/|[<>{}$*~]", target, re.I) or re.search(r"[<>{}*$|]", target):
                continue
            count += 1
            places = [posixpath.normpath(p) for p in (target, posixpath.join(posixpath.dirname(name), target))]
            hit = next((p for p in places if p in files or p in folders), None)
            if hit:
                used.add(hit)
                continue
            other = next((by_lower[p.lower()] for p in places if p.lower() in by_lower), None)
            problem = "differs in case from " + other if other else \
                "leaves the skill's folder" if all(p.startswith("..") for p in places) else "does not exist"
            broken.append({"file": name, "line": text.count("\n", 0, offset) + 1,
                           "column": offset - text.rfind("\n", 0, offset), "reference": raw, "in": how, "problem": problem})
    unused = sorted(f for f in files if f not in used and f != "SKILL.md" and not f.startswith((".", "LICENSE"))
                    and not any(f.startswith(u + "/") for u in used))
    return {"skill": root, "references": count, "broken": broken, "unreferenced": unused}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skill", nargs="+", help="a folder that holds SKILL.md")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    results = []
    for root in args.skill:
        if not os.path.isfile(os.path.join(root, "SKILL.md")):
            parser.exit(2, "check_links: %s: no SKILL.md here; name the folder of a skill\n" % root)
        try:
            results.append(check(root))
        except OSError as e:
            parser.exit(2, "check_links: %s\n" % e)
    if args.json:
        print(json.dumps({"results": results}, indent=2, ensure_ascii=False))
    else:
        for r in results:
            for b in r["broken"]:
                print("%s/%s:%d:%d: %s %s" % (r["skill"].rstrip("/"), b["file"], b["line"], b["column"], b["reference"], b["problem"]))
            for name in r["unreferenced"]:
                print("%s/%s: note: no text refers to this file" % (r["skill"].rstrip("/"), name))
            print("%s: %d references, %d broken" % (r["skill"], r["references"], len(r["broken"])), file=sys.stderr)
    sys.exit(1 if any(r["broken"] for r in results) else 0)


if __name__ == "__main__":
    main()
