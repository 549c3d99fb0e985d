import type { Schema } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { translateFinding } from "../../shared/servertext/finding";
import { Tag } from "../../shared/ui";
import { anchor } from "./position";

/** Findings lists the findings, worst first. They are also marked at their lines. */
export function Findings({ scan, unscanned }: { scan: Schema["Scan"]; unscanned: boolean }) {
  const rank = ["high", "medium", "low", "info"];
  const sorted = scan.findings
    .map(translateFinding)
    .sort((a, b) => rank.indexOf(a.severity) - rank.indexOf(b.severity));
  return (
    <section class="stack tight" aria-labelledby="review-scan">
      <h2 id="review-scan">{msg("review.scan")}</h2>
      {unscanned ? (
        <p class="note warn small">{msg("review.scanFailed")}</p>
      ) : (
        <p class="small muted">
          {sorted.length ? msg("review.adviceNote") : msg("review.none2")} {scan.truncated && msg("review.partial")}
        </p>
      )}
      {sorted.length > 0 && (
        <ul class="review-findings">
          {sorted.map((f, i) => (
            <li key={i}>
              <Tag look={f.severity === "high" ? "bad" : f.severity === "medium" ? "warn" : ""}>
                {findMsg("review.levels", f.severity)}
              </Tag>
              <div>
                <a href={`#${anchor(f.file)}`}>{f.message}</a>{" "}
                <code class="small">
                  {f.file}:{f.line}
                </code>
                <div class="small muted">{f.advice}</div>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
