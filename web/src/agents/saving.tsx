import { api, got, Refusal, useAsked, type Schema } from "../api/client";
import { ActionButton, Button, Dialog, done, Problem, Waiting } from "../ui";
import { ChangeView, type Change } from "./changes";
import { pathOf, sent, type Doc, type Place } from "./document";
import { located, type Fault } from "./faults";
import { printJSON } from "./print";
import { w } from "./words";

interface LookProps {
  /** Try it, or do it. */
  put: (dry: boolean) => Promise<Schema["Applied"]>;
  before?: unknown;
  after?: unknown;
  /** What was changed by somebody else meanwhile. */
  warning?: string;
  onFound: (changes: Change[]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** Shows what saving would change, value by value, and saves then. What is refused is not saved. */
function Look({ put, before, after, warning, onFound, onSaved, onClose }: LookProps) {
  const t = w();
  const asked = useAsked(async () => {
    const { changes } = await tried(put);
    onFound(changes);
    return changes;
  }, []);
  const refused = asked.data?.some((c) => c.outcome === "refused") ?? true;
  const nothing = asked.data?.every((c) => c.outcome === "unchanged") ?? false;
  const save = async () => {
    const { changes } = await put(false);
    done(t.saved);
    onSaved(changes);
  };
  const actions = (
    <>
      <Button onClick={onClose}>{t.goOn}</Button>
      <ActionButton look="primary" icon="check" disabled={refused || nothing} act={save}>{t.save}</ActionButton>
    </>
  );
  return (
    <Dialog title={refused && asked.data ? t.refused : t.changes} wide onClose={onClose} actions={actions}>
      {warning && <p class="note warn">{warning}</p>}
      {asked.error && <Problem error={asked.error} again={() => void asked.again()} />}
      {!asked.data && !asked.error && <Waiting for={t.comparing} />}
      {nothing && <p>{t.nothingChanged}</p>}
      {asked.data?.map((c, i) => <ChangeView key={i} change={c} before={before} after={after} />)}
    </Dialog>
  );
}

/** A trial, of which a refusal is an answer too. */
async function tried(put: (dry: boolean) => Promise<Schema["Applied"]>): Promise<{ changes: Change[] }> {
  try {
    return await put(true);
  } catch (error) {
    if (error instanceof Refusal && error.problem.changes?.length) return { changes: error.problem.changes };
    throw error;
  }
}

interface SavingProps {
  doc: Doc;
  /** As it is kept now. */
  before?: Doc;
  warning?: string;
  onFaults: (faults: Fault[]) => void;
  onSaved: (place: Place) => void;
  onClose: () => void;
}

/** Saving what the form has. */
export function Saving({ doc, before, warning, onFaults, onSaved, onClose }: SavingProps) {
  const document = sent(doc);
  const place: Place = { kind: doc.kind, namespace: doc.metadata.namespace, name: doc.metadata.name };
  const { text, paths } = printJSON(document);
  const put = (dry: boolean) => got(api.PUT("/api/v1/kinds/{kind}/{namespace}/{name}", { params: { ...pathOf(place), query: { dry } }, body: document as unknown as Record<string, never>, bodySerializer: () => text }));
  return <Look put={put} before={before && sent(before)} after={document} warning={warning} onFound={(changes) => onFaults(located(changes[0]?.findings ?? [], paths, doc.kind))} onSaved={() => onSaved(place)} onClose={onClose} />;
}

interface TextProps {
  text: string;
  json: boolean;
  onFound: (findings: Change["findings"]) => void;
  onSaved: (changes: Change[]) => void;
  onClose: () => void;
}

/** Saving documents as they are written. */
export function SavingText({ text, json, onFound, onSaved, onClose }: TextProps) {
  const type = json ? "application/json" : "application/yaml";
  const put = (dry: boolean) => got(api.POST("/api/v1/apply", { params: { query: { dry } }, headers: { "Content-Type": type }, body: text as never, bodySerializer: () => text }));
  return <Look put={put} onFound={(changes) => onFound(changes.flatMap((c) => c.findings))} onSaved={onSaved} onClose={onClose} />;
}
