#!/usr/bin/env python3
"""Report common mistakes in Mermaid diagrams, with line and column.

Reads .mmd files, or other text with ```mermaid blocks; "-" or no file means
standard input. It knows the mistakes people make, not the whole grammar: a
clean report is a good sign, not a proof. Checked in detail: flowchart,
sequence, state, class, ER, gantt, pie, mindmap, git graph, quadrant, xychart.
Exit code: 0 clean, 1 something found, 2 wrong use or unreadable input.
"""
import argparse
import difflib
import json
import re
import sys
from collections import namedtuple

Finding = namedtuple("Finding", "line column rule message")

KINDS = {"flowchart": "flow", "flowchart-elk": "flow", "graph": "flow", "sequenceDiagram": "sequence",
         "stateDiagram": "state", "stateDiagram-v2": "state", "classDiagram": "class", "classDiagram-v2": "class",
         "erDiagram": "er", "gantt": "gantt", "pie": "pie", "mindmap": "mindmap", "gitGraph": "git",
         "quadrantChart": "quadrant", "xychart": "xychart", "xychart-beta": "xychart"}
FENCE = re.compile(r"^[ \t]*(?P<tick>`{3,}|~{3,})[ ]?mermaid\b[^\n]*\n(?P<body>.*?)(?P<end>^[ \t]*(?P=tick)|\Z)", re.M | re.S)
# What holds no statements: front matter, directives, comment lines, accessibility texts.
NOISE = re.compile(r"\A\s*---\n.*?\n[ \t]*---(?=\n)|%%\{.*?\}%%|^[ \t]*%%[^\n]*"
                   r"|^[ \t]*accDescr\s*\{[^}]*\}|^[ \t]*acc(?:Title|Descr)[ \t]*:[^\n]*", re.M | re.S)

# Sound text is filled in before the rules run, so that they see structure only. FILLER is neither a
# word character nor Mermaid syntax; <T> stands for a label that needs no (more) quotes.
FILLER = "\u00a7"
LABEL = r'(?:"[§\n]*"|(?![^\s"\])}|]*@)[^\[\](){}"|]+)'
STRING = r'"[^"]*"'
FILL = {kind: [re.compile(p.replace("<T>", LABEL), re.M) for p in patterns] for kind, patterns in {
    "flow": [STRING, r"@\{[^}]*\}", r"^[ \t]*(?:(?:style|classDef|linkStyle|class)[ \t]+\w[^\n(]*|click[ \t]+\w[^\n]*)", r"\|<T>\|",
             r"(?<=\w)(?:\(\(\(<T>\)\)\)|\(\[<T>\]\)|\[\[<T>\]\]|\[\(<T>\)\]|\(\(<T>\)\)|\{\{<T>\}\}"
             r"|\[[/\\]<T>[/\\]\]|\[(?![/\\])<T>\]|\(<T>\)|\{<T>\}|><T>\])",
             r"(?<![-=.<])(?:(?:--|==)(?![-=.>xo])[^\n|\"]*?(?=--|==)|-\.(?![-=.>xo])[^\n|\".]*?(?=\.-))"
             r"|(?<=--|==|-\.)[ \t]*\"[^\"]*\""],
    "state": [r"^[ \t]*note[ \t][^:\n]*\n(?:.*\n)*?[ \t]*end note"],
    "er": [STRING, r"(?<![|o])\{[^{}]*(?:\}|\Z)"],
    "er body": [STRING, r"[|}o{]{2}(?:--|\.\.)[|}o{]{2}", r"(?:\A|\})[^{}]*(?:\{|\Z)"],
}.items()}

WORDS = r"((?:end|graph|flowchart|subgraph|style|class|classDef|linkStyle)(?!\w)|(?:interpolate|href|call)(?![\w.-]))"
RESERVED = "a reserved word cannot be an id: rename it and keep the word as the label"
QUOTE = 'put this text in double quotes, as in id["text"] or -->|"text"|; a quote inside them is #quot;'
ALIAS = 'the text comes first: state "text" as id'
RELATION = r"[|}o{]{2}(?:--|\.\.)[|}o{]{2}[^:\n]*"
# Per type: a pattern (its group marks the place), the name of the rule, what to do about it.
RULES = {kind: [(re.compile(p, re.M), rule, message) for p, rule, message in rows] for kind, rows in {
    "flow": [
        (r"(?<![-=.<])(->)|(?<!=)(=>)|([\u2190-\u21ff\u2013\u2014])", "arrow", "a link is -->, ==> or -.->"),
        (r"(?:[-=.][-=]+[>xo]?|\.->?|[§&])[ \t]*" + WORDS, "reserved", RESERVED),
        (r"^[ \t]*" + WORDS + r"[ \t]*(?:--|==|-\.|§)", "reserved", RESERVED),
        (r"^[ \t]*subgraph[ \t]+[^\n]*?([(){}])", "label", 'quote the title: subgraph id["title"]'),
        (r"^[ §]*§(\()", "colour", "no parentheses in a style: write colours as #rrggbb or by name"),
        (r"\w([\[({])|(\|)|-\.[ \t]+[^\"\n]*?(\.)(?!-)", "label", QUOTE),
        (r"(?:^|[>§])[ \t]*(?!subgraph\b)\w+[ \t]+([\[({])", "space", "no space between an id and its shape"),
        (r"(?:^|[>§])[ \t]*(?!(?:subgraph|direction)\b)\w(?:\w|[-.:](?=[\w:]))*§*[ \t]+(?![xo][-=])(\w[\w-]*)(?![\w@-])",
         "two-ids", "two ids without a link: ids have no spaces, write id[text]"),
        (r":::\w+([\[({>§])", "class-order", "the shape comes before :::class"),
        (r"[^\s%][ \t]*(%%)", "comment", "a comment needs a line of its own"),
        (r"[\w§]--+([xo])[A-Za-z]", "link-end", "x or o right after a link draws a cross or circle: put a space before the id"),
    ],
    "state": [
        (r"^[^:\n]*?[^-\s][ \t]*(->>?)", "arrow", "a transition is -->"),
        (r"-->[^:\n]*(-->)", "chain", "one transition a line"),
        (r"(?:^|-->)[ \t]*(\w+-\w[\w-]*)[ \t]*(?:-->|:|$)", "id", "no hyphen in a state id: use an underscore"),
        (r"^[ \t]*state[ \t]+(?:\w+[ \t]+(as)[ \t]+\"|(?:\"[^\"\n]*\"|\w+[ \t]+(?!as\b)\w[^\n]*?)[ \t]*(\{))", "alias", ALIAS),
        (r"^[ \t]*(note)[ \t]+(?:over\b|[^:\n]*$)", "note", "write note right of X : text, or lines closed by end note"),
    ],
    "class": [
        (r"(?<![-.<])(->|=>)", "arrow", "a relation is -->, --|>, --*, --o, ..> or ..|>"),
        (r"^[ \t]*class[ \t]+\w+(<)|(?:--|\.\.)[^:\n]*\w(<)\w", "generic", "write generics with tildes: List~int~"),
        (r"(?:--|\.\.)[^:\n]*:[^:\n]*(:)", "label", "no second colon in a relation label: write #58;"),
        (r"(?:--|\.\.)[|>*o]*[ \t]*\w+[ \t]+[<|*o]*(--|\.\.)", "chain", "one relation a line"),
        (r"^[ \t]*(abstract[ \t]+class\b|(?:enum|interface|struct)[ \t]+\w+[ \t]*\{)", "keyword",
         "write class X { with <<abstract>>, <<enumeration>> or <<interface>> inside"),
        (r"^[ \t]*note[ \t]+(?:for[ \t]+\w+[ \t]+)?(?!for\b)([^\"\s])", "note", "put the text of a note in quotes"),
        (r"^[ \t]*class[ \t]+(?:(\")|[\w~]+[ \t]*(\(|:(?!:)))", "id", 'write class Id["text"]'),
        (r"^[ \t]*class\b[^\n{]*\{[^}]*?(\{)", "braces", "no brace in a class body: is the class above closed?"),
    ],
    "er": [
        (RELATION + r"()$|" + RELATION + r":()[ \t]*$", "label", "a relation needs a label: A ||--o{ B : has"),
        (RELATION + r":[ \t]*(?:(')|[\w-]+([^\s\w-]|[ \t]+\S))", "label", "double-quote a label of more than one word"),
        (r"\w[ \t]+(-->?|->)[ \t]*\w", "arrow", "a relation shows both ends: A ||--o{ B : has"),
    ],
    "er body": [
        (r"^[ \t]*(\w+)[ \t]*$|^[ \t]*\w+(?:[ \t]+\w+)?[ \t]*(:)", "attribute", "an attribute is: type name"),
        (r"\b(?:PK|FK|UK)[ \t]+(PK|FK|UK)\b", "keys", "separate keys with a comma: PK, FK"),
        (r"\w[ \t]+('|//|%%|--)", "comment", "a remark on an attribute stands in double quotes"),
        (r"^[ \t]*\w+(<|\||\([^)\n]*[ \t])", "type", "a type is one word; (10,2) without a space and [] are allowed"),
    ],
    "gantt": [(r"^[ \t]*(?!(?:title|dateFormat|axisFormat|tickInterval|todayMarker|excludes|includes|section|click|weekday"
               r"|weekend|inclusiveEndDates|topAxis|displayMode)\b)(\S)[^:\n]*$", "task", "a task is: name : start, length")],
    "pie": [(r"^[ \t]*(?!title\b|showData\b)([^\s\"'])", "slice", "put the label of a slice in quotes"),
            (r"^[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*')(?![ \t]*:[ \t]*\d+(?:\.\d+)?[ \t]*$)()", "slice",
             "after the label come a colon and a plain number: no sign, unit or separator")],
    "mindmap": [(r"^[ \t]*\w*[(\[{]+(?![(\[{\"`])[^()\[\]{}\n]*([(\[{])", "label", QUOTE)],
    "git": [(r"\b(?:id|tag|msg):[ \t]*([^\s\"'])|\bcommit[ \t]+(id|tag|msg)[ \t]+[\"']", "quote", 'write id: "text"')],
    "quadrant": [(r"^(?![ \t]*title)[^\"\n]*?([(){}])", "label", QUOTE),
                 (r":[ \t]*(\[)(?![ \t]*(?:0\.\d+|[01])[ \t]*,[ \t]*(?:0\.\d+|[01])[ \t]*\])", "range", "coordinates lie between 0 and 1")],
    "xychart": [(r"^[ \t]*title[ \t]+([^\"\s]\S*[ \t]+\S)", "title", "put a title of several words in quotes"),
                (r"^[ \t]*[xy]-axis[^\"\n]*?([(){}$%])", "label", QUOTE)],
}.items()}
BLOCKS = {"loop": "", "opt": "", "rect": "", "box": "", "break": "", "alt": "else", "par": "and", "par_over": "and",
          "critical": "option"}
STATEMENT = re.compile(r"(participant|actor|create|destroy|activate|deactivate|note|title|autonumber|links?|properties"
                       r"|details|%s|else|and|option|end)(?=\s|:|$)" % "|".join(BLOCKS), re.I)


def position(text, offset):
    """The 1-based line and column of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def blank(text, pattern, filler=" "):
    """The text with each match overwritten; line ends and filled quotes stay, so offsets stay true."""
    keep = r"[^\n]" if filler == " " else r'[^\n"]'
    return re.sub(pattern, lambda m: re.sub(keep, filler, m.group()), text)


def nesting(text, pattern, close, what):
    """Openings without an end, and ends without an opening."""
    stack = []
    for m in re.finditer(pattern, text, re.M):
        if m[1] != close:
            stack.append(m.start(1))
        elif stack:
            stack.pop()
        else:
            yield m.start(1), "nesting", "this %r closes nothing" % close
    yield from ((offset, "nesting", "this %s is never closed" % what) for offset in stack)


def sequence(text):
    """A sequence diagram, statement by statement: a semicolon ends one just as a line end does."""
    stack, active = [], {}
    text = blank(text, r"#\w+;", FILLER)
    for m in re.finditer(r"[^\s;][^;\n]*", text):
        statement, start = m.group().strip(), m.start()
        known = STATEMENT.match(statement)
        word = known[1].lower() if known else ""
        if word in BLOCKS:
            stack.append((word, start))
        elif word == "end":
            if not stack:
                yield start, "nesting", "this end closes nothing"
            stack = stack[:-1]
        elif word in ("else", "and", "option") and (not stack or BLOCKS[stack[-1][0]] != word):
            yield start, "nesting", "%s does not belong into this block (alt/else, par/and, critical/option)" % word
        elif word == "note" and not re.match(r"note\s+(left of|right of|over)\s+[^:,]+(,[^:,]+)?:", statement, re.I):
            yield start, "note", "write Note over A,B: text, or Note left of A: text"
        elif word in ("activate", "deactivate"):
            who = statement.split(None, 1)[-1]
            active[who] = active.get(who, 0) + (1 if word == "activate" else -1)
        if known:
            continue
        head, colon, _ = statement.partition(":")
        arrow = re.search(r"<<--?>>|--?>>?(?!>)", head) or re.search(r"--?[x)]|--?[|/\\]{1,2}|[|/\\]{1,2}--?", head)
        if not arrow:
            after = text[:start].rstrip(" \t")[-1:] == ";"
            yield start, "statement", "a semicolon ends a text: write #59;" if after else \
                "neither a message (A->>B: text) nor a keyword; a line break inside a text is <br/>"
            continue
        sender, receiver = head[:arrow.start()].strip(" ()"), head[arrow.end():].strip(" ()")
        sign, receiver = receiver[:1], receiver.lstrip("+- ")
        if not colon:
            yield start, "colon", "a message needs a colon and a text: A->>B: text"
        if {sender.lower(), receiver.lower()} & {*BLOCKS, "end"}:
            yield start, "reserved", RESERVED
        who = {"+": receiver, "-": sender}.get(sign)
        active[who] = active.get(who, 0) + {"+": 1, "-": -1}.get(sign, 0)
        if active[who] < 0:
            active[who] = 0
            yield start, "activation", "%s is not active here, so it cannot be deactivated" % who
    yield from ((offset, "nesting", "this %s has no end" % word) for word, offset in stack)


def mindmap(text):
    """Everything hangs on the first line."""
    lines = list(re.finditer(r"^([ \t]*)[^\s:)\]}]", blank(text, STRING), re.M))
    for m in lines[1:]:
        if len(m[1]) <= len(lines[0][1]):
            yield m.end(1), "root", "a second root: indent it deeper than the first line"


def git(text):
    """Branches exist before they are used; the first is called main, unless configured."""
    seen = {"main"}
    for m in re.finditer(r"^[ \t]*(branch|checkout|switch|merge)[ \t]+([^\s\"]+)", text, re.M):
        if (m[1] == "branch") == (m[2] in seen):
            yield m.start(2), "branch", "this branch exists already" if m[2] in seen else "no such branch yet"
        seen.add(m[2])


def braces(text):
    """Composite states, class bodies and entities."""
    text = blank(text, STRING + r"|(?:[|}o{]{2})?(?:--|\.\.)(?:[|}o{]{2})?|:[^\n{}]*[^\n{](?=\n|\Z)")
    return nesting(text, r"([{}])", "}", "brace")


def subgraphs(text):
    return nesting(blank(text, STRING), r"(?:^|;)[ \t]*(subgraph\b|end(?=[ \t]*(?:;|$)))", "end", "subgraph")


CHECKS = {"flow": subgraphs, "sequence": sequence, "state": braces, "class": braces, "er": braces,
          "mindmap": mindmap, "git": git}


def lint(source, first_line=1):
    """The findings in one diagram, at most one a line; first_line is where the diagram stands in its file."""
    found = {}

    def note(offset, rule, message):
        line, column = position(source, offset)
        found.setdefault(line, Finding(line + first_line - 1, column, rule, message))

    text = blank(source, NOISE)
    head = re.search(r"[^\s:;]+", text)
    if not head:
        return [Finding(first_line, 1, "empty", "an empty diagram")]
    name, end = head.group(), head.end()
    kind = KINDS.get(name)
    if not kind:  # a newer type, which is none of our business, or a known one misspelt or left out
        near = next((k for k in KINDS if k.lower().startswith(name.lower())), None) or \
            next(iter(difflib.get_close_matches(name, KINDS, 1, 0.8)), None)
        if near or "->" in text[:text.find("\n") % (len(text) + 1)]:
            note(head.start(), "type", "no diagram type %r%s" % (name, "; did you mean %s?" % near if near else ""))
    elif kind == "flow":
        direction = re.compile(r"[ \t]+([^\s;]+)").match(text, end)
        end = direction.end() if direction else end
        if direction and direction[1] not in ("TB", "TD", "BT", "RL", "LR", "<", ">", "^", "v"):
            note(direction.start(1), "direction", "the direction is TD, TB, BT, LR or RL")
    elif kind in ("pie", "git"):  # a title or a direction may follow
        end = text.find("\n", end) % (len(text) + 1)
    text = blank(text[:end], r"[^\n]+") + text[end:]
    for part in ("er", "er body") if kind == "er" else (kind,):
        content = text
        for pattern in FILL.get(part, ()):
            content = blank(content, pattern, FILLER)
        for pattern, rule, message in RULES.get(part, ()):
            for m in pattern.finditer(content):
                note(m.start(m.lastindex), rule, message)
    if kind == "git" and "mainBranchName" in source:
        return sorted(found.values())
    for offset, rule, message in CHECKS.get(kind, lambda _: ())(text):
        note(offset, rule, message)
    return sorted(found.values())


def blocks(text, name="-"):
    """Yield (number of the first line, diagram, whether its fence is closed)."""
    fences = [] if name.endswith((".mmd", ".mermaid")) else list(FENCE.finditer(text))
    if not fences and not name.endswith((".md", ".mdx", ".markdown")):
        yield 1, text, True
    for m in fences:
        yield position(text, m.start("body"))[0], m["body"], bool(m["end"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["-"], metavar="FILE", help=".mmd or Markdown; - is standard input")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    args = parser.parse_args()
    findings, diagrams = [], 0
    for name in args.files:
        try:
            with (open(name, "rb") if name != "-" else sys.stdin.buffer) as f:
                text = f.read().decode("utf-8-sig").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as e:
            parser.exit(2, "lint_mermaid: %s: %s\n" % (name, e))
        for line, source, closed in blocks(text, name):
            diagrams += 1
            found = lint(source, line)
            if not closed:
                found.append(Finding(line - 1, 1, "fence", "the code fence of this diagram is never closed"))
            findings += [dict(file=name, **f._asdict()) for f in found]
    if args.json:
        print(json.dumps({"diagrams": diagrams, "findings": findings}, indent=2))
    else:
        for f in findings:
            print("{file}:{line}:{column}: {message} [{rule}]".format(**f))
        print("diagrams: %d, findings: %d" % (diagrams, len(findings)), file=sys.stderr)
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
