import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { skillFile } from "./files";

export type Pane = "fields" | "files" | "check" | "find" | "text";

const panes: Pane[] = ["fields", "files", "check", "find", "text"];

/** The view in the address: a part of the skill, and a file in the editor. */
export interface View {
  pane: Pane;
  file: string;
  /** Whether the editor is beside the other parts. */
  wide: boolean;
  show: (what: { pane?: Pane; file?: string }) => void;
  /** Opens a file at a line. */
  goTo: (file: string, line: number) => void;
  /** The line to show. A new object shows it again. */
  line?: { file: string; line: number };
}

export function useView(): View {
  const { path, query, route } = useLocation();
  const wide = useWide();
  const asked = panes.find((p) => p === query.pane) ?? "fields";
  const show = (what: { pane?: Pane; file?: string }) => {
    const next = new URLSearchParams(location.search);
    if (what.pane) next.set("pane", what.pane);
    if (what.file) next.set("file", what.file);
    route(`${path}?${next}`, true);
  };
  const [line, setLine] = useState<View["line"]>();
  const goTo = (file: string, at: number) => {
    show(wide ? { file } : { file, pane: "text" });
    setLine({ file, line: at });
  };
  return { goTo, line, pane: wide && asked === "text" ? "fields" : asked, file: query.file || skillFile, wide, show };
}

const isWide = matchMedia("(min-width: 64rem)");

/** useWide reports whether two columns fit. */
function useWide(): boolean {
  const [wide, setWide] = useState(isWide.matches);
  useEffect(() => {
    const change = () => setWide(isWide.matches);
    isWide.addEventListener("change", change);
    return () => isWide.removeEventListener("change", change);
  }, []);
  return wide;
}
