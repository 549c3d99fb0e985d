import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { Groups } from "../../features/settings/groups";
import { SkillsOfHub } from "../../features/settings/skillswitch";
import { isAdmin, ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Empty } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { type Section, sectionOf, Sections } from "../../shared/ui/sections";
import { Health } from "./health";
import { Quotas } from "./quotas";
import { Retention } from "./retention";
import { Shares } from "./shares";
import { Rules } from "./signinrules";
import { Users } from "./users";
import "../../features/settings/admin.css";

type Tab = "users" | "groups" | "skills" | "sign-in" | "quotas" | "shares" | "audit" | "health";

const parts: Record<Tab, () => ComponentChildren> = {
  users: () => <Users />,
  groups: () => <Groups base="/admin/groups" />,
  skills: () => <SkillsOfHub />,
  "sign-in": () => <Rules />,
  quotas: () => <Quotas />,
  shares: () => <Shares />,
  audit: () => <Retention />,
  health: () => <Health />,
};

/** Admin has the settings of the hub. */
export default function Admin() {
  const { path } = useLocation();

  if (!isAdmin.value)
    return (
      <Page title={msg("admin.title")}>
        <Empty
          title={msg("admin.only")}
          actions={
            <a class="button" href="/settings/groups">
              {msg("admin.toGroups")}
            </a>
          }
        >
          {msg("admin.onlyText")}
        </Empty>
      </Page>
    );
  const sections: Section[] = (Object.keys(parts) as Tab[])
    .filter((id) => id !== "shares" || ways.value?.mode !== "single")
    .map((id) => ({ id, text: msg(`admin.tabs.${id}`) }));
  const open = sectionOf(path, sections) as Tab;
  return (
    <Page title={msg("admin.title")}>
      <Sections base="/admin" label={msg("admin.section")} sections={sections} open={open}>
        {parts[open]()}
      </Sections>
    </Page>
  );
}
