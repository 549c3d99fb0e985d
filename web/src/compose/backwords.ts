import { words } from "../words";

// Apart from the other words, so that the chat does not fetch all of them.
export const w = words(
  { draft: (name: string) => `Draft of ${name}`, back: (name: string) => `Draft of ${name}: back to where it is written` },
  { draft: (name: string) => `${name} 草稿`, back: (name: string) => `${name} 草稿：回到编写页` },
);
