import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import "./settings.css";

export interface Section {
  id: string;
  text: string;
  /** Comes before the first of its part. */
  head?: string;
}

interface SectionsProps {
  base: string;
  label: string;
  sections: Section[];
  open: string;
  children: ComponentChildren;
}

/** Pages of one area: a list beside them, and on narrow screens a choice above them. */
export function Sections({ base, label, sections, open, children }: SectionsProps) {
  const { route } = useLocation();
  const id = useId();
  return (
    <div class="settings">
      <nav class="settings-list" aria-label={label}>
        {sections.map((s) => (
          <>
            {s.head && <p class="settings-head">{s.head}</p>}
            <a key={s.id} href={`${base}/${s.id}`} aria-current={s.id === open ? "page" : undefined}>{s.text}</a>
          </>
        ))}
      </nav>
      <div class="settings-choice field">
        <label for={id}>{label}</label>
        <select id={id} class="input" value={open} onChange={(e) => route(`${base}/${e.currentTarget.value}`)}>
          {sections.map((s) => <option key={s.id} value={s.id}>{s.text}</option>)}
        </select>
      </div>
      <div class="settings-body">{children}</div>
    </div>
  );
}

/** The second part of a path: which section is open. */
export const sectionOf = (path: string, sections: Section[]): string => {
  const written = path.split("/")[2] ?? "";
  return sections.some((s) => s.id === written) ? written : (sections[0]?.id ?? "");
};

/** A section with its title, what it is for, and one button that begins something new. */
export function Part({ title, lead, action, children }: { title: string; lead?: ComponentChildren; action?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="stack">
      <header class="row top settings-part">
        <div class="grow stack tight">
          <h2>{title}</h2>
          {lead && <p class="muted settings-lead">{lead}</p>}
        </div>
        {action}
      </header>
      {children}
    </section>
  );
}
