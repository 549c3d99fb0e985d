import type { Schema } from "../api/client";
import { Tag } from "../ui";
import { w } from "./words";

/** What a scan found, the gravest first; each also stands at its line below. */
export function Findings({ scan }: { scan: Schema["Scan"] }) {
  const t = w();
  const rank = ["high", "medium", "low", "info"];
  const sorted = [...scan.findings].sort((a, b) => rank.indexOf(a.severity) - rank.indexOf(b.severity));
  return (
    <section class="stack tight" aria-labelledby="review-scan">
      <h2 id="review-scan">{t.scan}</h2>
      <p class="small muted">{sorted.length ? t.adviceNote : t.none2} {scan.truncated && t.partial}</p>
      {sorted.length > 0 && (
        <ul class="review-findings">
          {sorted.map((f, i) => (
            <li key={i}>
              <Tag look={f.severity === "high" ? "bad" : f.severity === "medium" ? "warn" : ""}>{t.levels[f.severity]}</Tag>
              <div>
                <a href={`#${anchor(f.file)}`}>{f.message}</a> <code class="small">{f.file}:{f.line}</code>
                <div class="small muted">{f.advice}</div>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The id of the part of the page that shows a file. */
export const anchor = (path: string) => "file-" + encodeURIComponent(path);
