/**
 * A field of SKILL.md in the form. Fields of the specification, and fields that other programs read
 * at the top level, are written there. Other fields are written under `metadata` as strings, as the
 * specification wants.
 */
export interface FieldSpec {
  id: FieldID;
  /** The spellings that the hub reads. The first one is written. */
  keys: string[];
  kind: "line" | "text" | "list" | "tools" | "flag" | "map";
  home: "top" | "metadata";
  /** The maximum number of characters. */
  max?: number;
  /** The default of a flag. */
  off?: boolean;
}

export type FieldID =
  | "name"
  | "description"
  | "displayName"
  | "version"
  | "tags"
  | "userInvocable"
  | "disableModelInvocation"
  | "argumentHint"
  | "preload"
  | "model"
  | "allowedTools"
  | "dependencies"
  | "config"
  | "license"
  | "compatibility"
  | "author"
  | "category"
  | "bindShells"
  | "whenToUse";

/** The value of a field in the form. */
export type Value = string | string[] | boolean;

const spec = (
  id: FieldID,
  kind: FieldSpec["kind"],
  home: FieldSpec["home"],
  keys: string[],
  more: Partial<FieldSpec> = {},
): FieldSpec => ({ id, kind, home, keys, ...more });

export const fields: Record<FieldID, FieldSpec> = {
  name: spec("name", "line", "top", ["name"], { max: 64 }),
  description: spec("description", "text", "top", ["description"], { max: 1024 }),
  displayName: spec("displayName", "line", "metadata", ["displayName", "display_name", "display-name", "title"]),
  version: spec("version", "line", "metadata", ["version"]),
  tags: spec("tags", "list", "metadata", ["tags", "keywords"]),
  userInvocable: spec("userInvocable", "flag", "top", ["user-invocable", "user_invocable", "userInvocable"], {
    off: true,
  }),
  disableModelInvocation: spec(
    "disableModelInvocation",
    "flag",
    "top",
    ["disable-model-invocation", "disable_model_invocation", "disableModelInvocation"],
    { off: false },
  ),
  argumentHint: spec("argumentHint", "line", "top", ["argument-hint", "argument_hint", "argumentHint"]),
  preload: spec("preload", "flag", "metadata", ["preload"], { off: false }),
  model: spec("model", "line", "top", ["model"]),
  allowedTools: spec("allowedTools", "tools", "top", ["allowed-tools", "allowed_tools", "allowedTools"]),
  dependencies: spec("dependencies", "list", "metadata", ["dependencies"]),
  config: spec("config", "map", "top", ["config"]),
  license: spec("license", "line", "top", ["license"]),
  compatibility: spec("compatibility", "text", "top", ["compatibility"], { max: 500 }),
  author: spec("author", "line", "metadata", ["author"]),
  category: spec("category", "line", "metadata", ["category"]),
  bindShells: spec("bindShells", "list", "metadata", ["bindShells", "bind_shells", "bind-shells"]),
  whenToUse: spec("whenToUse", "text", "top", ["when_to_use", "when-to-use", "whenToUse"]),
};

/** The sections of the form, in order. */
export const parts: Record<"about" | "use" | "needs" | "more", FieldID[]> = {
  about: ["name", "description", "displayName", "version", "tags"],
  use: ["userInvocable", "disableModelInvocation", "preload", "argumentHint", "model"],
  needs: ["allowedTools", "dependencies", "config"],
  more: ["whenToUse", "license", "compatibility", "author", "category", "bindShells"],
};

/** The order of new fields at the top level. */
export const order = [
  "name",
  "description",
  "when_to_use",
  "license",
  "compatibility",
  "allowed-tools",
  "argument-hint",
  "user-invocable",
  "disable-model-invocation",
  "model",
  "config",
  "metadata",
];

/** splitTools splits tool patterns at spaces and commas outside parentheses, as the hub does. */
export function splitTools(text: string): string[] {
  const out: string[] = [];
  let depth = 0,
    word = "";
  for (const c of text) {
    if (c === "(") depth++;
    if (c === ")") depth = Math.max(depth - 1, 0);
    if (depth === 0 && (c === "," || /\s/.test(c))) {
      if (word) out.push(word);
      word = "";
    } else word += c;
  }
  return word.trim() ? [...out, word.trim()] : out;
}

/** splitList splits a list at commas. */
export const splitList = (text: string): string[] =>
  text
    .split(/[,，、\n]/)
    .map((t) => t.trim())
    .filter(Boolean);
