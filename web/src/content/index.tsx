/**
 * What shows content: of skills, models, tools and people, which is hostile. Each part fetches
 * what is heavy in it when it is first drawn, and shows plain text until then.
 */
export { Markdown } from "./markdown";
export { Code, type Mark } from "./code";
export { Mermaid } from "./mermaid";
export { Diff } from "./diff";
export { Editor, type Completion } from "./editor";
export { SchemaForm, type FormSchema } from "./form";
