import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { IconName } from "../../shared/ui";

/** A command of the palette. */
export interface Command {
  text: string;
  icon?: IconName;
  run: () => void;
}

/** What is open in front of the page. */
export const overlay = signal<"palette" | "sheet">();

/** The commands of the shown components. */
export const shownCommands = signal<readonly Command[]>([]);

/** useCommands adds commands to the palette while a component is shown. */
export function useCommands(commands: readonly Command[]) {
  const latest = useRef(commands);
  latest.current = commands;
  const texts = commands.map((c) => c.text).join("\n");
  useEffect(() => {
    const mine = latest.current.map((c, i) => ({ ...c, run: () => latest.current[i]?.run() }));
    shownCommands.value = [...shownCommands.value, ...mine];
    return () => void (shownCommands.value = shownCommands.value.filter((c) => !mine.includes(c)));
  }, [texts]);
}
