import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import { isAdmin } from "../api/me";
import { Groups } from "../settings/groups";
import { type Section, sectionOf, Sections } from "../settings/sections";
import { Page } from "../shell/page";
import { Empty } from "../ui";
import { Health } from "./health";
import { Retention } from "./retention";
import { Rules } from "./rules";
import { SkillsOfHub } from "./switch";
import { Users } from "./users";
import { w } from "./words";
import "./admin.css";

type Tab = keyof ReturnType<typeof w>["tabs"];

const parts: Record<Tab, () => ComponentChildren> = {
  users: () => <Users />, groups: () => <Groups base="/admin/groups" />, skills: () => <SkillsOfHub />, "sign-in": () => <Rules />, audit: () => <Retention />, health: () => <Health />,
};

/** What administrators decide for everybody. */
export default function Admin() {
  const { path } = useLocation();
  const t = w();
  if (!isAdmin.value) return <Page title={t.title}><Empty title={t.only} actions={<a class="button" href="/settings/groups">{t.toGroups}</a>}>{t.onlyText}</Empty></Page>;
  const sections: Section[] = (Object.keys(parts) as Tab[]).map((id) => ({ id, text: t.tabs[id] }));
  const open = sectionOf(path, sections) as Tab;
  return (
    <Page title={t.title}>
      <Sections base="/admin" label={t.section} sections={sections} open={open}>{parts[open]()}</Sections>
    </Page>
  );
}
