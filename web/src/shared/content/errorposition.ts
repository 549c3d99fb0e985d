/** The positions in Mermaid's errors. Its older and newer parsers use different fields. */
interface MermaidError {
  message?: string;
  hash?: { loc?: { first_line: number; first_column: number }; line?: number };
  result?: {
    lexerErrors?: { line?: number; column?: number }[];
    parserErrors?: { token?: { startLine?: number; startColumn?: number } }[];
  };
}

/** placeIn returns the message of a Mermaid error and its position in the source. */
export function placeIn(source: string, error: unknown): { message: string; line?: number; column?: number } {
  const e = (error ?? {}) as MermaidError;
  const message = (e.message ?? String(error)).trim();
  const lexed = e.result?.lexerErrors?.[0];
  const parsed = e.result?.parserErrors?.[0]?.token;
  const told = /on line (\d+)/i.exec(message) ?? /line:? (\d+)/i.exec(message);
  const loc = e.hash?.loc;
  const seen = [told && Number(told[1]), loc?.first_line, lexed?.line, parsed?.startLine].find(
    (n): n is number => !!n && Number.isFinite(n),
  );
  if (seen === undefined) return { message };
  const lines = kept(source);
  const line = lines[Math.min(seen, lines.length) - 1] ?? 1;
  const column = loc
    ? pointed(message, source.split(/\r\n?|\n/)[line - 1] ?? "")
    : (lexed?.column ?? parsed?.startColumn);
  return {
    message: message.replace(/on line \d+/i, `on line ${line}`),
    line,
    column: column && Number.isFinite(column) ? column : undefined,
  };
}

/**
 * pointed returns the column of an error of the older parsers. They print a piece of the text
 * without line breaks and an arrow below it.
 */
function pointed(message: string, line: string): number | undefined {
  const [, piece, arrow] = message.split("\n");
  if (!piece || !arrow || !/^-*\^$/.test(arrow)) return undefined;
  const before = piece.slice(0, arrow.length - 1).replace(/^\.\.\./, "");
  const after = piece.slice(arrow.length - 1).replace(/\.\.\.$/, "");
  for (let at = line.length; at >= 0; at--) {
    const rest = line.slice(at, at + after.length);
    if (after.startsWith(rest) && before.endsWith(line.slice(Math.max(0, at - before.length), at))) return at + 1;
  }
  return undefined;
}

/**
 * kept returns the numbers of the lines that Mermaid's parsers see. Mermaid removes the front
 * matter and comments first.
 */
function kept(source: string): number[] {
  const lines = source.split(/\r\n?|\n/);
  const out: number[] = [];
  for (let i = afterFrontMatter(lines); i < lines.length; i++) {
    const line = lines[i]!;
    if (/^\s*%%(?!\{)./.test(line)) {
      while (out.length && !lines[out.at(-1)! - 1]!.trim()) out.pop();
    } else if (out.length || !/^\s*(%%\{.*\}%%\s*)?$/.test(line)) out.push(i + 1);
  }
  return out;
}

function afterFrontMatter(lines: string[]): number {
  const start = lines.findIndex((l) => l.trim());
  if (start < 0 || lines[start]!.trim() !== "---") return 0;
  const end = lines.findIndex((l, i) => i > start && l.trim() === "---");
  return end + 1;
}
