import { ErrorBoundary, lazy, useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { Button, Dialog } from "../ui";
import { title } from "./inline";
import { asks, keepFresh, shownSession } from "./waiting";
import { w } from "./words";
import "./asks.css";

const Question = lazy(() => import("./question").then((m) => m.Question));

/** Questions of conversations that are not on the screen: a card in the corner, that opens them one by one. */
export default function Everywhere() {
  const { path } = useLocation();
  const [open, setOpen] = useState<string>();
  const [later, setLater] = useState<string[]>([]);
  useEffect(() => keepFresh(), []);
  const others = asks.value.filter((a) => a.kind !== "action" && a.session !== shownSession.value);
  const shown = others.find((a) => a.id === open);
  const next = others.find((a) => !later.includes(a.id));
  const t = w();
  return (
    <>
      {shown && (
        <Dialog title={title(shown)} onClose={() => setOpen(undefined)} actions={<a class="button" href={`/chat/${shown.session}`} onClick={() => setOpen(undefined)}>{t.open}</a>}>
          <ErrorBoundary><Question key={shown.id} ask={shown} onDone={() => setOpen(undefined)} /></ErrorBoundary>
        </Dialog>
      )}
      <div role="status" class="asks-corner" hidden={!next || path === "/asks" || !!shown}>
        {next && (
          <>
            <div class="grow">
              <strong>{t.waits(others.length)}</strong>
              <div class="small muted truncate">{title(next)}</div>
            </div>
            <Button small look="primary" onClick={() => setOpen(next.id)}>{t.answer}</Button>
            <Button small look="quiet" icon="close" label={t.later} onClick={() => setLater(others.map((a) => a.id))} />
          </>
        )}
      </div>
    </>
  );
}
