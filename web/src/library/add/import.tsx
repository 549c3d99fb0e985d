import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../api/client";
import { Button, Empty, Problem, TextField, Waiting } from "../../ui";
import { count } from "../../words";
import { Choice } from "./choice";
import { w } from "./words";

type Step = { at: "ask" } | { at: "looking" } | { at: "choose"; offer: Schema["Offer"] } | { at: "taking"; offer: Schema["Offer"] } | { at: "taken"; result: Schema["Imported"] };

/** Importing from a place in three steps: where, which, what became of it. */
export function ImportTab({ namespace }: { namespace: string }) {
  const t = w();
  const [source, setSource] = useState("");
  const [ref, setRef] = useState("");
  const [step, setStep] = useState<Step>({ at: "ask" });
  const [error, setError] = useState<unknown>();
  const request = { source: source.trim(), ref: ref.trim() || undefined, namespace: namespace || undefined };
  const attempt = async (now: Step, back: Step, act: () => Promise<Step>) => {
    setError(undefined);
    setStep(now);
    try {
      setStep(await act());
    } catch (e) {
      setError(e);
      setStep(back);
    }
  };
  const look = () => attempt({ at: "looking" }, { at: "ask" }, async () => ({ at: "choose", offer: await got(api.POST("/api/v1/skills/import/look", { body: request })) }));
  const take = (offer: Schema["Offer"], dirs: string[], overwrite: string[]) =>
    attempt({ at: "taking", offer }, { at: "choose", offer }, async () => ({ at: "taken", result: await got(api.POST("/api/v1/skills/import", { body: { ...request, commit: offer.commit, dirs, overwrite } })) }));
  return (
    <div class="stack">
      {error !== undefined && <Problem error={error} />}
      {step.at === "ask" && (
        <form
          class="stack add-form"
          onSubmit={(e) => {
            e.preventDefault();
            void look();
          }}
        >
          <TextField label={t.source} hint={t.sourceHint} value={source} onText={setSource} required placeholder="owner/repo" />
          <TextField label={t.ref} hint={t.refHint} value={ref} onText={setRef} />
          <div><Button look="primary" type="submit" icon="search" disabled={!source.trim()}>{t.look}</Button></div>
        </form>
      )}
      {step.at === "looking" && <Waiting for={t.looking} />}
      {step.at === "choose" && (step.offer.skills.length ? <Choice offer={step.offer} onTake={(dirs, over) => void take(step.offer, dirs, over)} onBack={() => setStep({ at: "ask" })} /> : <Nothing offer={step.offer} onBack={() => setStep({ at: "ask" })} />)}
      {step.at === "taking" && <Waiting for={t.taking} />}
      {step.at === "taken" && <Result result={step.result} onBack={() => setStep({ at: "ask" })} />}
    </div>
  );
}

function Nothing({ offer, onBack }: { offer: Schema["Offer"]; onBack: () => void }) {
  const t = w();
  return (
    <Empty title={t.nothing} actions={<Button onClick={onBack}>{t.another}</Button>}>
      <p>{t.nothingText}</p>
      {offer.problems.map((p) => <p key={p} class="small">{p}</p>)}
    </Empty>
  );
}

function Result({ result, onBack }: { result: Schema["Imported"]; onBack: () => void }) {
  const t = w();
  const parts = [["created", result.created], ["updated", result.updated], ["skipped", result.skipped]] as const;
  return (
    <section class="stack" aria-label={t.result}>
      {parts.filter(([, list]) => list.length).map(([kind, list]) => (
        <div key={kind} class={kind === "skipped" ? "note warn" : "note good"}>
          <strong>{t[kind]}: {count(list.length)}</strong>
          <ul>{list.map((s) => <li key={s.dir}>{s.id ? <a href={`/library/${s.id}`}>{s.name}</a> : s.name}{s.reason && <span class="muted"> {s.reason}</span>}</li>)}</ul>
        </div>
      ))}
      <div class="row">
        <a class="button primary" href="/library">{t.toLibrary}</a>
        <Button onClick={onBack}>{t.another}</Button>
      </div>
    </section>
  );
}
