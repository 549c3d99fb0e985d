/** Patterns of the texts of a diagnostic. Their groups fill the placeholders of the translation. */
export interface DiagnosticPatterns {
  message?: RegExp;
  fix?: RegExp;
}

/** Patterns for the English texts of diagnostics, by code. A code without variable parts has none. */
export const diagnosticPatterns: Record<string, DiagnosticPatterns> = {
  "file-name": { message: /named (.+), not/ },
  "file-too-long": { message: /more than (\d+) bytes/ },
  "file-special": { message: /^(.+?) (?:is|cannot)\b/ },
  "file-link": { message: /^(.+?) (?:is|cannot)\b/ },
  "file-unreadable": { message: /^(.+) cannot be read and is ignored: (.+)$/ },
  "frontmatter-too-long": { message: /more than (\d+) bytes/ },
  "yaml-invalid": { message: /frontmatter: (.+)$/ },
  "yaml-repaired": {
    message: /frontmatter: (.+); read as if the value of (.+) were quoted$/,
    fix: /value of (.+) in quotes/,
  },
  "yaml-too-large": { message: /frontmatter: (.+)$/ },
  "duplicate-key": { message: /field (".*") is repeated/ },
  "control-character": { message: /(U\+[0-9A-F]+)/ },
  "metadata-values": { message: /not strings: (.+)$/ },
  "unexpected-fields": { message: /frontmatter: (.+)\. Only \[(.+)\] are allowed/ },
  "name-missing": { fix: /^add (?:the line name:( \S+)|a line name: with .+)$/ },
  "name-empty": { fix: /^add (?:the line name:( \S+)|a line name: with .+)$/ },
  "name-unusable": { message: /^the name (".*?") is/, fix: /^add (?:the line name:( \S+)|a line name: with .+)$/ },
  "name-folder": {
    message: /^Directory name '(.*)' must match skill name '(.*)'$/,
    fix: /folder to (.+), or the skill to (.+)$/,
  },
  "name-too-long": { message: /^Skill name '(.*)' exceeds .*\((\d+) chars\)/ },
  "name-case": { message: /^Skill name '(.*)' must/, fix: /^name it (.+)$/ },
  "name-hyphen-edge": { fix: /^name it (.+)$/ },
  "name-hyphen-double": { fix: /^name it (.+)$/ },
  "name-characters": { message: /^Skill name '(.*)' contains/, fix: /^name it (.+)$/ },
  "name-not-portable": { message: /^the name (".*") contains/, fix: /^name it (.+)$/ },
  "name-reserved": { message: /^the name (".*") contains/ },
  "description-comment": { message: /before “(.*)”, which/ },
  "description-untyped": { message: /meaning for (.+)$/ },
  "description-too-long": { message: /\((\d+) chars\)/ },
  "hidden-characters": { message: /(U\+[0-9A-F]+)/ },
  "compatibility-too-long": { message: /\((\d+) chars\)/ },
  "dependency-python-module": { message: /no skills: (.+)$/ },
  "provider-file-missing": { message: /^the file (".*") of/ },
  "provider-class-missing": { message: /^(".*?") has no class (".*"), so/, fix: /has(: .+)?$/ },
  "provider-import-missing": { message: /^(".*?") imports (".*?") in line (\d+)/ },
  "mcp-servers": { message: /^(?:mcpServers is ignored: )?(.+)$/ },
  "function-invalid": { message: /^function (".*") is/ },
  "entrypoint-invalid": { message: /^entrypoint (".*") is/ },
  "requirement-invalid": { message: /^requirements: (".*") is/ },
  "requirements-too-many": { message: /has (\d+) items; only the first (\d+)/ },
  "examples-ignored": { message: /^(\d+) of/ },
  "not-a-boolean": { message: /^(\S+) is neither.*using (\S+)$/ },
  "not-a-map": { message: /^(\S+) is not/ },
  "body-tokens": { message: /about (\d+) tokens/ },
  "body-lines": { message: /have (\d+) lines/ },
  "catalog-line-tokens": { message: /about (\d+) tokens/ },
};
