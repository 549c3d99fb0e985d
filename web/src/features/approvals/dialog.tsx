import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary, useLocation } from "preact-iso";
import { msg } from "../../shared/i18n/messages";
import { Button, Dialog } from "../../shared/ui";
import { lazyPart } from "../../shared/ui/lazypart";
import { ariaKeys, keyText, useShortcut } from "../shortcuts/keys";
import { pendingText, title } from "./phrases";
import { pendingRequests, keepFresh, shownSession } from "./requests";
import "./bar.css";

const Question = lazyPart(() => import("./request").then((m) => m.Question));

/** Where the key goes if it does not open a request: to one on the page, or nowhere from a dialog. */
const elsewhere = "dialog[open], .asks-by-keys";

/**
 * Everywhere shows a bar for requests of conversations that are not on the screen, and opens them
 * one by one.
 */
export function Everywhere() {
  const { path } = useLocation();
  const [open, setOpen] = useState<string>();
  const [later, setLater] = useState<string[]>([]);
  useEffect(() => keepFresh(), []);
  const others = pendingRequests.value.filter((a) => a.kind !== "action" && a.session !== shownSession.value);
  const shown = others.find((a) => a.id === open);
  const next = others.find((a) => !later.includes(a.id));
  const bar = next && path !== "/asks" && !shown;
  useShortcut("request", bar ? () => !document.querySelector(elsewhere) && setOpen(next.id) : undefined);

  return (
    <>
      {shown && (
        <Dialog
          title={title(shown)}
          onClose={() => setOpen(undefined)}
          actions={
            <a class="button" href={`/chat/${shown.session}`} onClick={() => setOpen(undefined)}>
              {msg("approvals.open")}
            </a>
          }
        >
          <ErrorBoundary>
            <Question key={shown.id} ask={shown} onDone={() => setOpen(undefined)} />
          </ErrorBoundary>
        </Dialog>
      )}
      <div role="status" class="asks-bar" hidden={!bar}>
        {next && (
          <>
            <div class="grow">
              <strong>{pendingText(others.length)}</strong>
              <div class="small muted truncate">{title(next)}</div>
            </div>
            <Button
              small
              look="primary"
              title={keyText("request")}
              aria-keyshortcuts={ariaKeys("request")}
              onClick={() => setOpen(next.id)}
            >
              {msg("approvals.answer")}
            </Button>
            <Button
              small
              look="quiet"
              icon="close"
              label={msg("approvals.later")}
              onClick={() => setLater(others.map((a) => a.id))}
            />
          </>
        )}
      </div>
    </>
  );
}
