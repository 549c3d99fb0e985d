import type { Mark } from "./code";

interface DiffProps {
  /** As unified diffs are written, of one file. */
  diff: string;
  path: string;
  /** About lines of the new file. */
  marks?: Mark[];
  /** Side by side where there is room; else one below the other. */
  sides?: boolean;
}

/** What changed in a file. */
export function Diff({ diff }: DiffProps) {
  return <pre>{diff}</pre>;
}
