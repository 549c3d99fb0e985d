/** A location for a comment. Without a path it is the whole version, without a line the whole file. */
export interface Position {
  path?: string;
  /** The version that has the line, if another one than the reviewed one. */
  base?: number;
  line?: number;
}

/** anchor returns the element ID of a file. */
export const anchor = (path: string) => "file-" + encodeURIComponent(path);

/** anchorOf returns the element ID of a thread. */
export const anchorOf = (thread: string) => "thread-" + thread;

/** threadOfHash returns the thread that the address names. */
export const threadOfHash = () => /^#thread-(.+)$/.exec(location.hash)?.[1];

/**
 * refocus returns a function that focuses a thread when the page is drawn the next time, or what contained it if it is
 * gone.
 */
export function refocus(thread: string): () => void {
  const box = document.getElementById(anchorOf(thread));
  const around = [box?.closest(".review-file")?.querySelector<HTMLElement>(".review-toggle"), mainHeading()];
  return () =>
    requestAnimationFrame(() =>
      (document.getElementById(anchorOf(thread)) ?? around.find((e) => e?.isConnected))?.focus(),
    );
}

const mainHeading = () => document.querySelector<HTMLElement>("h1[tabindex]");
