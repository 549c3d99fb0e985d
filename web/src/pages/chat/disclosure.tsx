import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "../../shared/ui";

interface FoldProps {
  line: ComponentChildren;
  /** Drawn only when open. */
  children: () => ComponentChildren;
  class?: string;
  open?: boolean;
}

/** Fold is a line that opens to details. It draws the details only when opened, because most never are. */
export function Fold({ line, children, class: more = "", open: first = false }: FoldProps) {
  const [open, setOpen] = useState(first);
  return (
    <details class={`chat-fold ${more}`} open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span class="chevron">
          <Icon name="right" size={14} />
        </span>
        {line}
      </summary>
      {open && <div class="chat-inside stack tight">{children()}</div>}
    </details>
  );
}
