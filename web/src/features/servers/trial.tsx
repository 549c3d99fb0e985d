import { useState } from "preact/hooks";
import { api, got, type Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Problem } from "../../shared/ui";
import { ToolList } from "./tools";

/** The result of a server test. */
type Tried = Schema["ServerTried"];

/** tryServer connects to a server, for at most 15 seconds. */
const tryServer = (what: Schema["ServerTrial"]) => got(api.POST("/api/v1/servers/test", { body: what }));

/** The state of the last test. */
interface Trial {
  tried?: Tried;
  busy: boolean;
  error?: unknown;
  run: () => Promise<void>;
}

/** useTrial tests a server and keeps the last result. */
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

/** TrialButton tests a server. */
export function TrialButton({ trial, primary, small }: { trial: Trial; primary?: boolean; small?: boolean }) {
  return (
    <ActionButton look={primary ? "primary" : ""} small={small} icon="play" act={trial.run}>
      {trial.busy ? msg("servers.testing") : trial.tried ? msg("servers.testAgain") : msg("servers.test")}
    </ActionButton>
  );
}

/** TrialResult shows the result of a test. */
export function TrialResult({ trial, note }: { trial: Trial; note?: string }) {
  return (
    <div class="stack tight servers-trial" aria-live="polite">
      {trial.busy && <p class="waiting">{msg("servers.testingNow")}</p>}
      {!!trial.error && <Problem error={trial.error} />}
      {trial.tried?.success === false && (
        <div class="note bad">
          <strong>{msg("servers.testFailed")}</strong>
          <span class="servers-text">{trial.tried.error}</span>
        </div>
      )}
      {trial.tried?.success && (
        <>
          <p class="note good">{msg("servers.testWorked", { count: trial.tried.tools.length })}</p>
          <ToolList tools={trial.tried.tools} />
        </>
      )}
      {note && (trial.busy || trial.tried) && <p class="small muted">{note}</p>}
    </div>
  );
}
