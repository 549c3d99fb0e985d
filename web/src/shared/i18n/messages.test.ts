import { same, test } from "../../../test/units/check";
import en from "./en.json";

const files = import.meta.glob<Record<string, string>>("./*.json", { import: "default", eager: true });
const sources = import.meta.glob<string>(["../../**/*.{ts,tsx}", "!../../**/*.test.*"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** Groups of messages that only other languages have: the hub and CodeMirror write English themselves. */
const translated = /^(diagnostic|problem|finding|editorPanel)\./;

const keysOf = (messages: Record<string, string>): string[] =>
  [...new Set(Object.keys(messages).map((key) => key.replace(/_(zero|one|two|few|many|other)$/, "")))]
    .filter((key) => !translated.test(key))
    .sort();

const placeholdersOf = (text: string): string[] =>
  [...new Set([...text.matchAll(/\{\{(\w+)\}\}/g)].map((m) => m[1]!))].sort();

test("messages: each language has every key, with the same placeholders", () => {
  const english: Record<string, string> = en;
  for (const [file, messages] of Object.entries(files)) {
    same(keysOf(messages), keysOf(english));
    for (const [key, text] of Object.entries(messages)) {
      if (translated.test(key)) continue;
      const model = english[key] ?? english[key.replace(/_\w+$/, "_other")] ?? "";
      same([file, key, placeholdersOf(text)], [file, key, placeholdersOf(model)]);
    }
  }
});

test("messages: the page uses every message", () => {
  const code = Object.values(sources).join("\n");
  const used = (key: string): boolean => {
    const groups = key
      .split(".")
      .map((_, i, parts) => parts.slice(0, i).join("."))
      .filter(Boolean);
    return (
      code.includes(`"${key}"`) ||
      groups.some(
        (group) =>
          code.includes(`\`${group}.\${`) || code.includes(`sOf("${group}")`) || code.includes(`findMsg("${group}"`),
      )
    );
  };
  same(
    keysOf(en).filter((key) => !used(key)),
    [],
  );
});
