import { api, got, Refusal, useAsked, type Schema } from "../api/client";
import { me } from "../api/me";
import { ActionButton, Button, Dialog, done, Problem, Waiting } from "../ui";
import { moment } from "../words";
import { ChangeView, type Change } from "./changes";
import { pathOf, sent, type Doc, type Place } from "./document";
import { located, type Fault } from "./faults";
import { printJSON, printYAML } from "./print";
import { w } from "./words";

interface LookProps {
  /** Try it, or do it, in the place of a generation; without one, of whatever is there. */
  put: (dry: boolean, made?: number) => Promise<Schema["Applied"]>;
  /** The generation that it was made from. */
  made?: number;
  before?: unknown;
  after?: unknown;
  /** What was changed by somebody else meanwhile. */
  warning?: string;
  onFound: (changes: Change[]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** Shows what saving would change, value by value, and saves then. What is refused is not saved. */
function Look({ put, made, before, after, warning, onFound, onSaved, onClose }: LookProps) {
  const t = w();
  const asked = useAsked(async () => {
    const { changes } = await tried((dry) => put(dry, made));
    onFound(changes);
    return changes;
  }, []);
  const stale = asked.data?.find((c) => c.stale)?.stale;
  const refused = asked.data?.some((c) => c.outcome === "refused" && !c.stale) ?? true;
  const nothing = asked.data?.every((c) => c.outcome === "unchanged") ?? false;
  // What was looked at is what is replaced: somebody may be faster once more.
  const save = async () => {
    try {
      const { changes } = await put(false, stale ? stale.generation || undefined : made);
      done(t.saved);
      onSaved(changes);
    } catch (error) {
      const late = changesOf(error);
      if (!late) throw error;
      onFound(late);
      asked.set(late);
    }
  };
  const actions = (
    <>
      <Button onClick={onClose}>{t.goOn}</Button>
      <ActionButton look={stale ? "danger" : "primary"} icon="check" disabled={refused || nothing} act={save}>{stale ? t.saveAnyway : t.save}</ActionButton>
    </>
  );
  return (
    <Dialog title={stale ? t.someoneFaster : refused && asked.data ? t.refused : t.changes} wide onClose={onClose} actions={actions}>
      {warning && <p class="note warn">{warning}</p>}
      {stale && <Newer stale={stale} now={before} />}
      {asked.error && <Problem error={asked.error} again={() => void asked.again()} />}
      {!asked.data && !asked.error && <Waiting for={t.comparing} />}
      {nothing && <p>{t.nothingChanged}</p>}
      {asked.data?.map((c, i) => <ChangeView key={i} change={c} before={before} after={after} findings={!c.stale} />)}
    </Dialog>
  );
}

/** Who was faster, and what there is now. */
function Newer({ stale, now }: { stale: NonNullable<Change["stale"]>; now?: unknown }) {
  const t = w();
  if (!stale.generation) return <p class="note warn" role="alert">{t.goneMeanwhile}</p>;
  return (
    <>
      <p class="note warn" role="alert">{t.staleSays(stale.changedBy === me.value?.user.id ? t.yourself : stale.name || t.somebody, stale.updated ? moment(stale.updated) : "")}</p>
      {now !== undefined && <details><summary>{t.newerOne}</summary><pre class="agents-newer" tabIndex={0}>{printYAML(now as Doc)}</pre></details>}
    </>
  );
}

/** What an error says of documents, where it does. */
const changesOf = (error: unknown): Change[] | undefined => (error instanceof Refusal && error.problem.changes?.length ? error.problem.changes : undefined);

/** A trial, of which a refusal is an answer too. */
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
  /** As it is kept now. */
  before?: Doc;
  /** The generation that it was made from. */
  made?: number;
  onFaults: (faults: Fault[]) => void;
  onSaved: (place: Place) => void;
  onClose: () => void;
}

/** Saving what the form has. */
export function Saving({ doc, before, made, onFaults, onSaved, onClose }: SavingProps) {
  const document = sent(doc);
  const place: Place = { kind: doc.kind, namespace: doc.metadata.namespace, name: doc.metadata.name };
  const { text, paths } = printJSON(document);
  const put = (dry: boolean, from?: number) => got(api.PUT("/api/v1/kinds/{kind}/{namespace}/{name}", { params: { ...pathOf(place), query: { dry }, ...(from && { header: { "If-Match": `"${from}"` } }) }, body: document as unknown as Record<string, never>, bodySerializer: () => text }));
  return <Look put={put} before={before && sent(before)} after={document} made={made} onFound={(changes) => onFaults(located((changes[0]?.findings ?? []).filter((f) => f.code !== "stale"), paths, doc.kind))} onSaved={() => onSaved(place)} onClose={onClose} />;
}

interface TextProps {
  text: string;
  json: boolean;
  warning?: string;
  onFound: (findings: Change["findings"]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** Saving documents as they are written. */
export function SavingText({ text, json, warning, onFound, onSaved, onClose }: TextProps) {
  const type = json ? "application/json" : "application/yaml";
  const put = (dry: boolean) => got(api.POST("/api/v1/apply", { params: { query: { dry } }, headers: { "Content-Type": type }, body: text as never, bodySerializer: () => text }));
  return <Look put={put} warning={warning} onFound={(changes) => onFound(changes.flatMap((c) => c.findings))} onSaved={onSaved} onClose={onClose} />;
}
