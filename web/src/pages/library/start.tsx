import type { ComponentChildren } from "preact";
import type { Address } from "../../features/skills/skilladdress";
import type { Schema } from "../../shared/api/client";
import { msg } from "../../shared/i18n/messages";
import { Cards } from "./cards";
import { withCount } from "./filterchips";
import { sortName } from "./phrases";
import type { SkillList } from "./queries";

type Name = Schema["SkillSection"]["name"];

/** The list that continues each section. */
const lists: Record<Name, Record<string, string>> = {
  attention: { attention: "1", sort: "updated" },
  approved: { review: "approved", sort: "approved" },
  team: { sort: "team" },
  new: { sort: "created" },
};

function titleOfSection(name: Name): string {
  if (name === "attention") return msg("library.attention");
  return name === "new" ? msg("library.new") : sortName(name);
}

/** Start is the start page of the library: a short row of skills for each section. */
export function Start({ skills, defaults, at }: { skills: SkillList; defaults: Set<string>; at: Address }) {
  return (
    <div class="stack loose library-start">
      {skills.sections?.map((s) => (
        <Section key={s.name} title={titleOfSection(s.name)} all={at.with(lists[s.name])}>
          <Cards skills={s.items} defaults={defaults} heading="h3" />
        </Section>
      ))}
      <Categories facets={skills.facets} at={at} />
    </div>
  );
}

function Section({ title, all, children }: { title: string; all?: string; children: ComponentChildren }) {
  return (
    <section class="stack tight" aria-label={title}>
      <div class="row">
        <h2 class="grow">{title}</h2>
        {all && (
          <a class="small" href={all}>
            {msg("library.showAll")}
            <span class="visually-hidden"> ({title})</span>
          </a>
        )}
      </div>
      {children}
    </section>
  );
}

/** The number of categories that the start page shows. The filter has the others. */
const mostCategories = 12;

/** Categories links to the skills of each category, or of each tag if no skill has a category. */
function Categories({ facets, at }: { facets: Schema["SkillFacets"]; at: Address }) {
  const [key, title, all] = facets.categories.length
    ? (["category", msg("library.categories"), facets.categories.map((c) => [c.category, c.count] as const)] as const)
    : (["tag", msg("library.tags"), facets.tags.map((t) => [t.tag, t.count] as const)] as const);
  if (!all.length) return null;
  return (
    <Section title={title}>
      <ul class="row library-categories">
        {all.slice(0, mostCategories).map(([name, n]) => (
          <li key={name}>
            <a class="library-chip" href={at.with({ [key]: name })}>
              {withCount(name, n)}
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
}
