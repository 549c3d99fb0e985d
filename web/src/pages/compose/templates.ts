import { skillFile, type DraftFile } from "./files";

/** The templates, in order. The message files describe them. */
export const templates: Record<string, () => DraftFile[]> = {
  instructions: () => [skill(head("my-skill"), plain)],
  references: () => [skill(head("my-guide"), guide), { path: "references/details.md", text: details }],
  script: () => [skill(head("my-report"), program), { path: "scripts/run.py", text: script }],
  command: () => [skill(`${head("my-command")}argument-hint: "[what]"\ndisable-model-invocation: true\n`, command)],
  blank: () => [{ path: skillFile, text: "" }],
};

const skill = (fields: string, body: string): DraftFile => ({ path: skillFile, text: `---\n${fields}---\n\n${body}` });

function head(name: string): string {
  const words = name.replaceAll("-", " ");
  return `name: ${name}\ndescription: Helps with ${words}. Use when the task is about ${words}.\n`;
}

// The text that Draft.Render of package skill writes for a new skill.
const plain = `# my skill

## When to use this

Name the situations, and what is out of scope.

## Steps

1. Say what to do first, in the imperative.
2. Say how to tell that it worked.

## Files

Put long material into files under references/ and name them here, with a note on when to
read each; put programs under scripts/ and templates under assets/.
`;

const guide = `# my guide

## When to use this

Name the situations, and what is out of scope.

## Steps

1. Say what to do in most cases, in the imperative.
2. Read [references/details.md](references/details.md) for all other cases.
`;

const details = `# Details

Details that are rarely needed: tables, formats, examples, special cases. Start with a list of
the contents, so that the right part is easy to find.
`;

const program = `# my report

## When to use this

Name the situations, and what is out of scope.

## Steps

1. Find the file that the user means.
2. Run \`scripts/run.py FILE\`. It prints the lines of the report.
3. Summarize the important findings in two sentences, and show the report.
`;

const script = `#!/usr/bin/env python3
"""Counts the lines and words of a text file."""

import sys


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: run.py FILE", file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    print(f"lines: {len(text.splitlines())}")
    print(f"words: {len(text.split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
`;

const command = `# my command

The user started this skill with these arguments: $ARGUMENTS

## Steps

1. Say what to do with it, in the imperative.
2. Say how to tell that it worked.
`;
