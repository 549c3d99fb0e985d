import type { ComponentChildren } from "preact";

/** Something that is said about a line, as a finding of a scan. */
export interface Mark {
  line: number;
  level: "info" | "warn" | "bad";
  /** Stands below the line. */
  say: ComponentChildren;
}

interface CodeProps {
  text: string;
  /** The language by its name, or by the path of the file it is from. */
  language?: string;
  path?: string;
  /** Show numbers of lines. */
  numbers?: boolean;
  marks?: Mark[];
  /** How high it gets before it scrolls, as "24rem"; without it all is shown. */
  height?: string;
}

/** A piece of code with its colours, and what is said about its lines. */
export function Code({ text }: CodeProps) {
  return <pre>{text}</pre>;
}
