import { useState } from "preact/hooks";
import { api, type Schema } from "../../../shared/api/client";
import { asStream, gotWithProgress } from "../../../shared/api/progress";
import { count } from "../../../shared/i18n/format";
import { msg } from "../../../shared/i18n/messages";
import { loadProblemPatterns } from "../../../shared/servertext";
import { Button, Empty, Problem, TextField, Waiting } from "../../../shared/ui";
import { Choice, importableSkills } from "./choice";
import { leftOut, outcomesOf } from "./outcomes";
import { Groups, type Outcome, Summary } from "./summary";

type Step =
  { at: "ask" } | { at: "running" } | { at: "choose"; offer: Schema["Offer"] } | { at: "done"; outcomes: Outcome[] };

/** ImportTab imports from a source in three steps: source, selection, result. */
export function ImportTab({ namespace }: { namespace: string }) {
  const [source, setSource] = useState("");
  const [ref, setRef] = useState("");
  const [step, setStep] = useState<Step>({ at: "ask" });
  const [progress, setProgress] = useState<Schema["Progress"]>({ phase: "fetch", done: 0 });
  const [error, setError] = useState<unknown>();
  const request = { source: source.trim(), ref: ref.trim() || undefined, namespace: namespace || undefined };
  const attempt = async (back: Step, act: () => Promise<Step>) => {
    setError(undefined);
    setProgress({ phase: "fetch", done: 0 });
    setStep({ at: "running" });
    try {
      setStep(await act());
    } catch (e) {
      setError(e);
      setStep(back);
    }
  };
  const look = () =>
    attempt({ at: "ask" }, async () => {
      const answer = api.POST("/api/v1/skills/import/look", { body: request, ...asStream });
      const offer = await gotWithProgress<Schema["Offer"]>(answer, setProgress);
      return offer.skills.length && !importableSkills(offer).length
        ? { at: "done", outcomes: leftOut(offer) }
        : { at: "choose", offer };
    });
  const take = (offer: Schema["Offer"], dirs: string[], overwrite: string[]) =>
    attempt({ at: "choose", offer }, async () => {
      const body = { ...request, commit: offer.commit, dirs, overwrite };
      const answer = api.POST("/api/v1/skills/import", { body, ...asStream });
      const result = await gotWithProgress<Schema["Imported"]>(answer, setProgress);
      await loadProblemPatterns();
      return { at: "done", outcomes: outcomesOf(offer, dirs, result) };
    });
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
      {step.at === "running" && <Running {...progress} />}
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
      {step.at === "done" && (
        <>
          <Summary outcomes={step.outcomes} />
          <div class="row">
            <a class="button primary" href="/library">
              {msg("add.toLibrary")}
            </a>
            <Button onClick={() => setStep({ at: "ask" })}>{msg("add.another")}</Button>
          </div>
        </>
      )}
    </div>
  );
}

/** Running shows how far the hub is. */
function Running({ phase, done, total = 0 }: Schema["Progress"]) {
  return (
    <div class="stack tight add-form">
      <Waiting for={msg(`add.phases.${phase}`)} />
      {total > 0 && (
        <div class="row">
          <progress class="progress" aria-label={msg(`add.phases.${phase}`)} value={done} max={total} />
          <span class="small muted">
            {phase === "fetch"
              ? msg("add.percent", { percent: Math.floor((100 * done) / total) })
              : msg("add.doneOf", { done: count(done), total: count(total) })}
          </span>
        </div>
      )}
    </div>
  );
}

function Nothing({ offer, onBack }: { offer: Schema["Offer"]; onBack: () => void }) {
  return (
    <Empty title={msg("add.nothing")} actions={<Button onClick={onBack}>{msg("add.another")}</Button>}>
      <p>{msg("add.nothingText")}</p>
      <Groups outcomes={leftOut(offer)} />
    </Empty>
  );
}
