import type { Signal } from "@preact/signals";
import type { ComponentProps } from "preact";
import { msg } from "../../shared/i18n/messages";
import { Button, failed } from "../../shared/ui";
import type { Version } from "./branches";
import type { Turn } from "./transcript";

/** What the user can do with a turn. */
export interface TurnActions {
  /** Whether a turn is running or queued. Meanwhile, nothing below is possible. */
  busy: boolean;
  /** The input of the message that is to be edited, or 0. */
  edited: Signal<number>;
  /** Sends another text and images instead of a message, on a new branch. */
  edit: (turn: Turn, text: string, images: Turn["images"]) => Promise<void>;
  /** Sends a message again, on a new branch. */
  retry: (turn: Turn) => Promise<void>;
  /** Lets the next message continue after the turn. */
  continueAfter: (turn: Turn) => void;
  /** Shows the branch that ends with a step. */
  switchTo: (step: number) => Promise<unknown>;
}

interface TurnButtonProps extends ComponentProps<typeof Button> {
  busy: boolean;
  onClick: () => void;
}

/** TurnButton is a button for a turn. While a turn runs it says why it does nothing, and keeps the focus. */
export function TurnButton({ busy, label, onClick, ...rest }: TurnButtonProps) {
  return (
    <Button
      small
      look="quiet"
      label={label}
      title={busy ? msg("chat.afterResponse") : label}
      aria-disabled={busy || undefined}
      onClick={() => busy || onClick()}
      {...rest}
    />
  );
}

interface VersionsProps {
  turn: Turn;
  versions: readonly Version[];
  actions: TurnActions;
}

/** Versions shows which version of a message is open, and switches to another one. */
export function Versions({ turn, versions, actions }: VersionsProps) {
  const at = versions.findIndex((v) => v.turn.input === turn.input);
  const step = (by: number) => {
    const to = versions[at + by];
    if (to && !actions.busy) void actions.switchTo(to.last).catch(failed);
  };
  const key = (e: KeyboardEvent) => {
    if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    e.preventDefault();
    step(e.key === "ArrowLeft" ? -1 : 1);
  };
  return (
    <div class="chat-versions" role="group" aria-label={msg("chat.versions")} onKeyDown={key}>
      <Button
        small
        look="quiet"
        icon="left"
        label={msg("chat.earlierVersion")}
        title={actions.busy ? msg("chat.afterResponse") : msg("chat.earlierVersion")}
        aria-disabled={actions.busy || at === 0 || undefined}
        onClick={() => step(-1)}
      />
      <span aria-hidden="true">
        {at + 1} / {versions.length}
      </span>
      <span class="visually-hidden" aria-live="polite">
        {msg("chat.versionOf", { n: at + 1, count: versions.length })}
      </span>
      <Button
        small
        look="quiet"
        icon="right"
        label={msg("chat.laterVersion")}
        title={actions.busy ? msg("chat.afterResponse") : msg("chat.laterVersion")}
        aria-disabled={actions.busy || at === versions.length - 1 || undefined}
        onClick={() => step(1)}
      />
    </div>
  );
}
