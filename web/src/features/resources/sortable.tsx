import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { msg } from "../../shared/i18n/messages";
import { Button, Icon } from "../../shared/ui";

interface SortableProps<T> {
  label: string;
  items: T[];
  keyOf: (item: T) => string;
  nameOf: (item: T) => string;
  onOrder: (items: T[]) => void;
  children: (item: T, at: number) => ComponentChildren;
}

/** Sortable is a list that the user orders by dragging, with arrow keys or with buttons. */
export function Sortable<T>({ label, items, keyOf, nameOf, onOrder, children }: SortableProps<T>) {
  const list = useRef<HTMLOListElement>(null);
  const [dragged, hold] = useState(-1);
  const [announcement, announce] = useState("");
  const move = (from: number, to: number) => {
    if (to < 0 || to >= items.length || from === to) return;
    const next = [...items];
    next.splice(to, 0, ...next.splice(from, 1));
    onOrder(next);
    announce(msg("agents.moved", { name: nameOf(items[from]!), at: to + 1, of: items.length }));
  };
  const step = (from: number, by: number, button: "handle" | "up" | "down") => {
    move(from, from + by);
    requestAnimationFrame(() =>
      list.current?.children[from + by]?.querySelector<HTMLElement>(`[data-move="${button}"]`)?.focus(),
    );
  };
  const drag = (e: PointerEvent) => {
    if (dragged < 0) return;
    const rows = [...(list.current?.children ?? [])].map((c) => c.getBoundingClientRect());
    const to = rows.findIndex((r) => e.clientY < r.top + r.height / 2);
    const target = to < 0 ? rows.length - 1 : to > dragged ? to - 1 : to;
    if (target === dragged) return;
    move(dragged, target);
    hold(target);
  };
  return (
    <>
      <ol class="agents-sortable" ref={list} aria-label={label}>
        {items.map((item, i) => (
          <li key={keyOf(item)} class={dragged === i ? "held" : ""}>
            <button
              type="button"
              class="agents-handle"
              data-move="handle"
              aria-label={msg("agents.handle", { name: nameOf(item) })}
              title={msg("agents.handleHint")}
              onPointerDown={(e) => {
                e.currentTarget.setPointerCapture(e.pointerId);
                hold(i);
              }}
              onPointerMove={drag}
              onPointerUp={() => hold(-1)}
              onPointerCancel={() => hold(-1)}
              onKeyDown={(e) => {
                const by = { ArrowUp: -1, ArrowDown: 1 }[e.key];
                if (by) {
                  e.preventDefault();
                  step(i, by, "handle");
                }
              }}
            >
              <Icon name="more" size={16} />
            </button>
            <div class="agents-item">{children(item, i)}</div>
            <span class="agents-moves">
              <Button
                small
                look="quiet"
                icon="up"
                data-move="up"
                label={msg("agents.up", { name: nameOf(item) })}
                disabled={i === 0}
                onClick={() => step(i, -1, "up")}
              />
              <Button
                small
                look="quiet"
                icon="down"
                data-move="down"
                label={msg("agents.down", { name: nameOf(item) })}
                disabled={i === items.length - 1}
                onClick={() => step(i, 1, "down")}
              />
            </span>
          </li>
        ))}
      </ol>
      <p class="visually-hidden" role="status">
        {announcement}
      </p>
    </>
  );
}
