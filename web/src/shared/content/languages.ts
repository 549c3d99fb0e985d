import type { LanguageFn } from "highlight.js";

type Get = () => Promise<{ default: LanguageFn }>;

/** The supported languages: title, other names, file endings or file names, and grammar. */
const all: Record<string, [title: string, also: string, get: Get]> = {
  bash: [
    "Shell",
    "sh zsh shell console shellsession ksh .bashrc .profile .env",
    () => import("highlight.js/lib/languages/bash"),
  ],
  c: ["C", "h", () => import("highlight.js/lib/languages/c")],
  cpp: ["C++", "cc cxx c++ hpp hh", () => import("highlight.js/lib/languages/cpp")],
  csharp: ["C#", "cs c#", () => import("highlight.js/lib/languages/csharp")],
  css: ["CSS", "scss less", () => import("highlight.js/lib/languages/css")],
  diff: ["Diff", "patch", () => import("highlight.js/lib/languages/diff")],
  dockerfile: ["Dockerfile", "docker containerfile", () => import("highlight.js/lib/languages/dockerfile")],
  go: ["Go", "golang", () => import("highlight.js/lib/languages/go")],
  http: ["HTTP", "https", () => import("highlight.js/lib/languages/http")],
  ini: ["INI", "toml cfg conf properties editorconfig", () => import("highlight.js/lib/languages/ini")],
  java: ["Java", "", () => import("highlight.js/lib/languages/java")],
  javascript: ["JavaScript", "js jsx mjs cjs node", () => import("highlight.js/lib/languages/javascript")],
  json: ["JSON", "jsonc json5 jsonl ndjson ipynb", () => import("highlight.js/lib/languages/json")],
  kotlin: ["Kotlin", "kt kts", () => import("highlight.js/lib/languages/kotlin")],
  latex: ["LaTeX", "tex", () => import("highlight.js/lib/languages/latex")],
  lua: ["Lua", "", () => import("highlight.js/lib/languages/lua")],
  makefile: ["Makefile", "make mk", () => import("highlight.js/lib/languages/makefile")],
  markdown: ["Markdown", "md mdx mkd", () => import("highlight.js/lib/languages/markdown")],
  perl: ["Perl", "pl pm", () => import("highlight.js/lib/languages/perl")],
  php: ["PHP", "", () => import("highlight.js/lib/languages/php")],
  powershell: ["PowerShell", "ps1 psm1 pwsh", () => import("highlight.js/lib/languages/powershell")],
  python: ["Python", "py pyi py3 gyp", () => import("highlight.js/lib/languages/python")],
  r: ["R", "rscript", () => import("highlight.js/lib/languages/r")],
  ruby: ["Ruby", "rb gemfile rakefile", () => import("highlight.js/lib/languages/ruby")],
  rust: ["Rust", "rs", () => import("highlight.js/lib/languages/rust")],
  sql: ["SQL", "psql mysql sqlite", () => import("highlight.js/lib/languages/sql")],
  swift: ["Swift", "", () => import("highlight.js/lib/languages/swift")],
  typescript: ["TypeScript", "ts tsx mts cts", () => import("highlight.js/lib/languages/typescript")],
  xml: ["HTML", "html xhtml svg xml rss xsd xsl plist vue htm", () => import("highlight.js/lib/languages/xml")],
  yaml: ["YAML", "yml", () => import("highlight.js/lib/languages/yaml")],
};

const byName = new Map<string, string>();
for (const [name, [, also]] of Object.entries(all))
  for (const n of [name, ...also.split(" ")]) if (n) byName.set(n, name);

/** known returns the language for a name or a path. */
export function known(language?: string, path?: string): string | undefined {
  const file = path?.split("/").at(-1)?.toLowerCase() ?? "";
  return (
    byName.get(language?.toLowerCase() ?? "") ??
    byName.get(file) ??
    (file.includes(".") ? byName.get(file.split(".").at(-1)!) : undefined)
  );
}

/** title returns the display name of a language. */
export function title(language?: string, path?: string): string {
  const name = known(language, path);
  return name && !(name === "xml" && language === "xml") ? all[name]![0] : (language ?? "").slice(0, 24);
}

export const grammar = (name: string) => all[name]![2]();
