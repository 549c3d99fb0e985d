import { api, got, Refusal, useLoad, type Schema } from "../../shared/api/client";
import { me } from "../../shared/api/me";
import { formatTime } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, Dialog, done, Problem, Waiting } from "../../shared/ui";
import { ChangeView, type Change } from "./changes";
import { pathOf, sent, type Doc, type ResourceRef } from "./document";
import { located, type Fault } from "./faults";
import { changedBy } from "./phrases";
import { printJSON, printYAML } from "./printdocument";

interface LookProps {
  /** Validates or saves the documents. With a generation, it fails if the saved one is newer. */
  put: (dry: boolean, made?: number) => Promise<Schema["Applied"]>;
  /** The generation that the draft is based on. */
  made?: number;
  before?: unknown;
  after?: unknown;
  /** A change by another user since then. */
  warning?: string;
  onFound: (changes: Change[]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** Look shows the changes value by value, then saves them. Refused documents are not saved. */
function Look({ put, made, before, after, warning, onFound, onSaved, onClose }: LookProps) {
  const load = useLoad(async () => {
    const { changes } = await tried((dry) => put(dry, made));
    onFound(changes);
    return changes;
  }, []);
  const stale = load.data?.find((c) => c.stale)?.stale;
  const refused = load.data?.some((c) => c.outcome === "refused" && !c.stale) ?? true;
  const nothing = load.data?.every((c) => c.outcome === "unchanged") ?? false;
  // The generation on the screen is replaced. Another user may have saved a newer one again.
  const save = async () => {
    try {
      const { changes } = await put(false, stale ? stale.generation || undefined : made);
      done(msg("agents.saved"));
      onSaved(changes);
    } catch (error) {
      const late = changesOf(error);
      if (!late) throw error;
      onFound(late);
      load.set(late);
    }
  };
  const actions = (
    <>
      <Button onClick={onClose}>{msg("agents.goOn")}</Button>
      <ActionButton look={stale ? "danger" : "primary"} icon="check" disabled={refused || nothing} act={save}>
        {stale ? msg("agents.saveAnyway") : msg("agents.save")}
      </ActionButton>
    </>
  );
  return (
    <Dialog
      title={stale ? msg("agents.someoneFaster") : refused && load.data ? msg("agents.refused") : msg("agents.changes")}
      wide
      onClose={onClose}
      actions={actions}
    >
      {warning && <p class="note warn">{warning}</p>}
      {stale && <Newer stale={stale} now={before} />}
      {load.error && <Problem error={load.error} again={() => void load.again()} />}
      {!load.data && !load.error && <Waiting for={msg("agents.comparing")} />}
      {nothing && <p>{msg("agents.nothingChanged")}</p>}
      {load.data?.map((c, i) => (
        <ChangeView key={i} change={c} before={before} after={after} findings={!c.stale} />
      ))}
    </Dialog>
  );
}

/** Newer says who saved a newer version, and shows it. */
function Newer({ stale, now }: { stale: NonNullable<Change["stale"]>; now?: unknown }) {
  if (!stale.generation)
    return (
      <p class="note warn" role="alert">
        {msg("agents.goneMeanwhile")}
      </p>
    );
  return (
    <>
      <p class="note warn" role="alert">
        {changedBy(
          stale.changedBy === me.value?.user.id ? msg("agents.yourself") : stale.name || msg("agents.somebody"),
          stale.updated ? formatTime(stale.updated) : "",
        )}
      </p>
      {now !== undefined && (
        <details>
          <summary>{msg("agents.newerOne")}</summary>
          <pre class="agents-newer" tabIndex={0}>
            {printYAML(now as Doc)}
          </pre>
        </details>
      )}
    </>
  );
}

/** changesOf returns the diagnostics of an error, if it has any. */
const changesOf = (error: unknown): Change[] | undefined =>
  error instanceof Refusal && error.problem.changes?.length ? error.problem.changes : undefined;

/** tried validates the documents. A refusal is a result too. */
async function tried(put: (dry: boolean) => Promise<Schema["Applied"]>): Promise<{ changes: Change[] }> {
  try {
    return await put(true);
  } catch (error) {
    const changes = changesOf(error);
    if (changes) return { changes };
    throw error;
  }
}

interface SavingProps {
  doc: Doc;
  /** The saved document. */
  before?: Doc;
  /** The generation that the draft is based on. */
  made?: number;
  onFaults: (faults: Fault[]) => void;
  onSaved: (place: ResourceRef) => void;
  onClose: () => void;
}

/** Saving reviews and saves the document of the form. */
export function Saving({ doc, before, made, onFaults, onSaved, onClose }: SavingProps) {
  const document = sent(doc);
  const place: ResourceRef = { kind: doc.kind, namespace: doc.metadata.namespace, name: doc.metadata.name };
  const { text, paths } = printJSON(document);
  const put = (dry: boolean, from?: number) =>
    got(
      api.PUT("/api/v1/kinds/{kind}/{namespace}/{name}", {
        params: { ...pathOf(place), query: { dry }, ...(from && { header: { "If-Match": `"${from}"` } }) },
        body: document as unknown as Record<string, never>,
        bodySerializer: () => text,
      }),
    );
  return (
    <Look
      put={put}
      before={before && sent(before)}
      after={document}
      made={made}
      onFound={(changes) =>
        onFaults(
          located(
            (changes[0]?.findings ?? []).filter((f) => f.code !== "stale"),
            paths,
            doc.kind,
          ),
        )
      }
      onSaved={() => onSaved(place)}
      onClose={onClose}
    />
  );
}

interface TextProps {
  text: string;
  json: boolean;
  warning?: string;
  onFound: (findings: Change["findings"]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** SavingText reviews and saves documents as text. */
export function SavingText({ text, json, warning, onFound, onSaved, onClose }: TextProps) {
  const type = json ? "application/json" : "application/yaml";
  const put = (dry: boolean) =>
    got(
      api.POST("/api/v1/apply", {
        params: { query: { dry } },
        headers: { "Content-Type": type },
        body: text as never,
        bodySerializer: () => text,
      }),
    );
  return (
    <Look
      put={put}
      warning={warning}
      onFound={(changes) => onFound(changes.flatMap((c) => c.findings))}
      onSaved={onSaved}
      onClose={onClose}
    />
  );
}
