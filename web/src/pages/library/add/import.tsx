import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../../shared/api/client";
import { count } from "../../../shared/i18n/format";
import { msg } from "../../../shared/i18n/messages";
import { Button, Empty, Problem, TextField, Waiting } from "../../../shared/ui";
import { Choice } from "./choice";

type Step =
  | { at: "ask" }
  | { at: "looking" }
  | { at: "choose"; offer: Schema["Offer"] }
  | { at: "taking"; offer: Schema["Offer"] }
  | { at: "taken"; result: Schema["Imported"] };

/** ImportTab imports from a source in three steps: source, selection, result. */
export function ImportTab({ namespace }: { namespace: string }) {
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
  const look = () =>
    attempt({ at: "looking" }, { at: "ask" }, async () => ({
      at: "choose",
      offer: await got(api.POST("/api/v1/skills/import/look", { body: request })),
    }));
  const take = (offer: Schema["Offer"], dirs: string[], overwrite: string[]) =>
    attempt({ at: "taking", offer }, { at: "choose", offer }, async () => ({
      at: "taken",
      result: await got(
        api.POST("/api/v1/skills/import", { body: { ...request, commit: offer.commit, dirs, overwrite } }),
      ),
    }));
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
          <TextField
            label={msg("add.source")}
            hint={msg("add.sourceHint")}
            value={source}
            onText={setSource}
            required
            placeholder="owner/repo"
          />
          <TextField label={msg("add.ref")} hint={msg("add.refHint")} value={ref} onText={setRef} />
          <div>
            <Button look="primary" type="submit" icon="search" disabled={!source.trim()}>
              {msg("add.look")}
            </Button>
          </div>
        </form>
      )}
      {step.at === "looking" && <Waiting for={msg("add.looking")} />}
      {step.at === "choose" &&
        (step.offer.skills.length ? (
          <Choice
            offer={step.offer}
            onTake={(dirs, over) => void take(step.offer, dirs, over)}
            onBack={() => setStep({ at: "ask" })}
          />
        ) : (
          <Nothing offer={step.offer} onBack={() => setStep({ at: "ask" })} />
        ))}
      {step.at === "taking" && <Waiting for={msg("add.taking")} />}
      {step.at === "taken" && <Result result={step.result} onBack={() => setStep({ at: "ask" })} />}
    </div>
  );
}

function Nothing({ offer, onBack }: { offer: Schema["Offer"]; onBack: () => void }) {
  return (
    <Empty title={msg("add.nothing")} actions={<Button onClick={onBack}>{msg("add.another")}</Button>}>
      <p>{msg("add.nothingText")}</p>
      {offer.problems.map((p) => (
        <p key={p} class="small">
          {p}
        </p>
      ))}
    </Empty>
  );
}

function Result({ result, onBack }: { result: Schema["Imported"]; onBack: () => void }) {
  const parts = [
    ["created", result.created],
    ["updated", result.updated],
    ["skipped", result.skipped],
  ] as const;
  return (
    <section class="stack" aria-label={msg("add.result")}>
      {parts
        .filter(([, list]) => list.length)
        .map(([kind, list]) => (
          <div key={kind} class={kind === "skipped" ? "note warn" : "note good"}>
            <strong>
              {msg(`add.${kind}`)}: {count(list.length)}
            </strong>
            <ul>
              {list.map((s) => (
                <li key={s.dir}>
                  {s.id ? <a href={`/library/${s.id}`}>{s.name}</a> : s.name}
                  {s.pending ? (
                    <span class="muted"> {msg("add.waits", { n: s.number ?? 0 })}</span>
                  ) : (
                    s.reason && <span class="muted"> {s.reason}</span>
                  )}
                </li>
              ))}
            </ul>
          </div>
        ))}
      <div class="row">
        <a class="button primary" href="/library">
          {msg("add.toLibrary")}
        </a>
        <Button onClick={onBack}>{msg("add.another")}</Button>
      </div>
    </section>
  );
}
