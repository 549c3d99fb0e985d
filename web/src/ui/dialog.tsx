import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { ActionButton, Button } from "./button";
import { useModal } from "./modal";
import { Problem } from "./say";
import { w } from "./words";

interface DialogProps {
  title: string;
  /** Called when it is to be closed: by Escape, the cross, or a click beside it. */
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
  /** The buttons at its end. */
  actions?: ComponentChildren;
}

/** A question in front of the page, modal as long as it is drawn. */
export function Dialog({ title, onClose, wide, children, actions }: DialogProps) {
  const id = useId();
  const modal = useModal(onClose);
  return (
    <dialog {...modal} class={wide ? "dialog wide" : "dialog"} aria-labelledby={id}>
      <header>
        <h2 id={id} class="grow">{title}</h2>
        <Button look="quiet" icon="close" label={w().close} onClick={onClose} />
      </header>
      <div class="body stack">{children}</div>
      {actions && <footer>{actions}</footer>}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** What the button says that does it, as "Delete the skill". */
  yes: string;
  danger?: boolean;
  act: () => Promise<unknown>;
  onClose: () => void;
}

/** Asks before something is done that cannot be taken back. */
export function Confirm({ title, children, yes, danger, act, onClose }: ConfirmProps) {
  const [error, setError] = useState<unknown>();
  const run = async () => {
    setError(undefined);
    try {
      await act();
      onClose();
    } catch (refused) {
      setError(refused); // it is said here: what lies behind a dialog cannot be read
    }
  };
  return (
    <Dialog title={title} onClose={onClose} actions={<><Button onClick={onClose}>{w().cancel}</Button><ActionButton look={danger ? "danger" : "primary"} act={run}>{yes}</ActionButton></>}>
      {children}
      {error !== undefined && <Problem error={error} />}
    </Dialog>
  );
}

/** `const confirm = useConfirm()`: draw confirm.open, and ask by confirm.ask({...}). */
export function useConfirm() {
  const [asked, ask] = useState<Omit<ConfirmProps, "onClose">>();
  return { ask, open: asked && <Confirm {...asked} onClose={() => ask(undefined)} /> };
}
