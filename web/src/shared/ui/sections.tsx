import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { useLocation } from "preact-iso";
import "./settings.css";

export interface Section {
  id: string;
  text: string;
  /** The heading before the first section of a group. */
  head?: string;
}

interface SectionsProps {
  base: string;
  label: string;
  sections: Section[];
  open: string;
  children: ComponentChildren;
}

/** Sections shows sections with a list of links, or a select on narrow screens. */
export function Sections({ base, label, sections, open, children }: SectionsProps) {
  const { route } = useLocation();
  const id = useId();
  return (
    <div class="settings">
      <nav class="settings-list" aria-label={label}>
        {sections.map((s) => (
          <>
            {s.head && <p class="settings-head">{s.head}</p>}
            <a key={s.id} href={`${base}/${s.id}`} aria-current={s.id === open ? "page" : undefined}>
              {s.text}
            </a>
          </>
        ))}
      </nav>
      <div class="settings-choice field">
        <label for={id}>{label}</label>
        <select id={id} class="input" value={open} onChange={(e) => route(`${base}/${e.currentTarget.value}`)}>
          {sections.map((s) => (
            <option key={s.id} value={s.id}>
              {s.text}
            </option>
          ))}
        </select>
      </div>
      <div class="settings-body">{children}</div>
    </div>
  );
}

/** sectionOf returns the open section, by the second part of the path. */
export const sectionOf = (path: string, sections: Section[]): string => {
  const written = path.split("/")[2] ?? "";
  return sections.some((s) => s.id === written) ? written : (sections[0]?.id ?? "");
};

/** Part is a section with a title, an introduction and a button. */
export function Part({
  title,
  lead,
  action,
  children,
}: {
  title: string;
  lead?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
}) {
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
