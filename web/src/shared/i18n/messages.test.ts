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

test("messages: one Chinese word is used for one thing", () => {
  const chinese = Object.entries(files["./zh-Hans.json"]!);
  const other: [RegExp, string][] = [
    [/第 ?\{\{\w+\}\} ?版/, "版本 {{n}}"],
    [/机密/, "密钥"],
    [/丢弃/, "放弃"],
    [/保存位置|^位置$/, "命名空间"],
    [/(所有|和|给)使用者|使用者会/, "用户"],
    [/^说明(有|中有|约有)|移到说明中|这些说明/, "指令"],
    [/你/, "您"],
  ];
  for (const [word, better] of other)
    same(
      chinese.filter(([, text]) => word.test(text)).map(([key]) => key),
      [],
      `write ${better}`,
    );
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
