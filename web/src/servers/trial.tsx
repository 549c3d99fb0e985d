import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { ActionButton, Problem } from "../ui";
import { ToolList } from "./tools";
import { w } from "./words";

/** What came of trying a server: its tools, or why there are none. */
type Tried = Schema["ServerTried"];

/** Connects to a server, for 15 seconds at most. */
const tryServer = (what: Schema["ServerTrial"]) => got(api.POST("/api/v1/servers/test", { body: what }));

/** What is known of the last try. */
interface Trial {
  tried?: Tried;
  busy: boolean;
  error?: unknown;
  run: () => Promise<void>;
}

/** Trying one server, and what came of it last. */
export function useTrial(what: Schema["ServerTrial"]): Trial {
  const [state, put] = useState<{ tried?: Tried; busy: boolean; error?: unknown }>({ busy: false });
  const run = async () => {
    put((was) => ({ ...was, busy: true }));
    try {
      put({ tried: await tryServer(what), busy: false });
    } catch (error) {
      put({ error, busy: false });
    }
  };
  return { ...state, run };
}

/** The button that tries a server. */
export function TrialButton({ trial, primary, small }: { trial: Trial; primary?: boolean; small?: boolean }) {
  const t = w();
  return <ActionButton look={primary ? "primary" : ""} small={small} icon="play" act={trial.run}>{trial.busy ? t.testing : trial.tried ? t.testAgain : t.test}</ActionButton>;
}

/** What came of it, in full. */
export function TrialResult({ trial, note }: { trial: Trial; note?: string }) {
  const t = w();
  return (
    <div class="stack tight servers-trial" aria-live="polite">
      {trial.busy && <p class="waiting">{t.testingNow}</p>}
      {!!trial.error && <Problem error={trial.error} />}
      {trial.tried?.success === false && <div class="note bad"><strong>{t.testFailed}</strong><span class="servers-text">{trial.tried.error}</span></div>}
      {trial.tried?.success && <><p class="note good">{t.testWorked(trial.tried.tools.length)}</p><ToolList tools={trial.tried.tools} /></>}
      {note && (trial.busy || trial.tried) && <p class="small muted">{note}</p>}
    </div>
  );
}
