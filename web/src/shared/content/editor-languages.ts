import { StreamLanguage } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

/** The languages of the editor. */
export type EditorLanguage = "markdown" | "json" | "yaml" | "text" | "python" | "shell" | "javascript";

const get: Record<EditorLanguage, () => Promise<Extension>> = {
  // SKILL.md: YAML between fences, then Markdown.
  markdown: async () => {
    const [m, y] = await Promise.all([import("@codemirror/lang-markdown"), import("@codemirror/lang-yaml")]);
    return y.yamlFrontmatter({ content: m.markdown({ base: m.markdownLanguage }) });
  },
  json: async () => (await import("@codemirror/lang-json")).json(),
  yaml: async () => (await import("@codemirror/lang-yaml")).yaml(),
  python: async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/python")).python),
  shell: async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/shell")).shell),
  javascript: async () => StreamLanguage.define((await import("@codemirror/legacy-modes/mode/javascript")).javascript),
  text: async () => [],
};

export const languageOf = (name: EditorLanguage) => get[name]();
