import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { msg } from "../i18n/messages";
import { ActionButton, Button } from "./button";
import { useModal } from "./modal";
import { Problem } from "./status";

interface DialogProps {
  title: string;
  /** Called by Escape, the close button, or a click outside. */
  onClose: () => void;
  wide?: boolean;
  /** Whether Escape and a click outside do not close it, because something would be lost. */
  firm?: boolean;
  children: ComponentChildren;
  /** The buttons at the end. */
  actions?: ComponentChildren;
}

/** Dialog is a modal dialog. */
export function Dialog({ title, onClose, wide, firm, children, actions }: DialogProps) {
  const id = useId();
  const modal = useModal(onClose, firm);
  return (
    <dialog {...modal} class={wide ? "dialog wide" : "dialog"} aria-labelledby={id}>
      <header>
        <h2 id={id} class="grow">
          {title}
        </h2>
        <Button look="quiet" icon="close" label={msg("ui.close")} onClick={onClose} />
      </header>
      <div class="body stack">{children}</div>
      {actions && <footer>{actions}</footer>}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** The label of the confirming button, such as "Delete skill". */
  yes: string;
  danger?: boolean;
  act: () => Promise<unknown>;
  onClose: () => void;
}

/** Confirm asks before an irreversible action. */
export function Confirm({ title, children, yes, danger, act, onClose }: ConfirmProps) {
  const [error, setError] = useState<unknown>();
  const run = async () => {
    setError(undefined);
    try {
      await act();
      onClose();
    } catch (refused) {
      setError(refused); // shown here, because the page behind a dialog cannot be read
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{msg("ui.cancel")}</Button>
          <ActionButton look={danger ? "danger" : "primary"} act={run}>
            {yes}
          </ActionButton>
        </>
      }
    >
      {children}
      {error !== undefined && <Problem error={error} />}
    </Dialog>
  );
}

/** useConfirm returns a confirm dialog: draw confirm.open, and call confirm.ask({...}). */
export function useConfirm() {
  const [asked, ask] = useState<Omit<ConfirmProps, "onClose">>();
  return { ask, open: asked && <Confirm {...asked} onClose={() => ask(undefined)} /> };
}
