/**
 * Components for hostile content of skills, models, tools and users. Each loads its heavy libraries
 * when first drawn, and shows plain text until then.
 */
export { Markdown } from "./markdown";
export { Code, type Mark } from "./code";
export { Mermaid } from "./mermaid";
export { Diff, type LineTools, type Side } from "./diff";
export { hunks } from "./difflines";
export { Editor, type Completion } from "./editor";
export { showHiddenCharacters } from "./visibletext";
export { SchemaForm, type FormSchema } from "./form";
