import { useLocation } from "preact-iso";
import type { ComponentChildren } from "preact";
import { ways } from "../api/me";
import { Page } from "../shell/page";
import { Appearance } from "./appearance";
import { Defaults } from "./defaults";
import { Grants } from "./grants";
import { Groups } from "./groups";
import { Notices } from "./notices";
import { Password } from "./password";
import { Profile } from "./profile";
import { Secrets } from "./secrets";
import { type Section, sectionOf, Sections } from "./sections";
import { SignIns } from "./signins";
import { Tokens } from "./tokens";
import { w } from "./words";

type Tab = keyof ReturnType<typeof w>["tabs"];

const parts: Record<Tab, () => ComponentChildren> = {
  profile: () => <Profile />, password: () => <Password />, "sign-ins": () => <SignIns />, tokens: () => <Tokens />, secrets: () => <Secrets />,
  grants: () => <Grants />, notices: () => <Notices />, defaults: () => <Defaults />, groups: () => <Groups base="/settings/groups" />, appearance: () => <Appearance />,
};

// What is about signing in is not there on a hub that serves one person.
const ofAccounts: Tab[] = ["password", "sign-ins", "tokens"];
const order: [keyof ReturnType<typeof w>["heads"], Tab[]][] = [
  ["you", ["profile", "appearance", "notices"]],
  ["work", ["defaults", "groups"]],
  ["access", ["password", "sign-ins", "tokens", "secrets", "grants"]],
];

/** What somebody decides alone. */
export default function Settings() {
  const { path } = useLocation();
  const t = w();
  const single = ways.value?.mode === "single";
  const sections: Section[] = order.flatMap(([head, tabs]) =>
    tabs.filter((id) => !(single && ofAccounts.includes(id))).map((id, i) => ({ id, text: t.tabs[id], head: i === 0 ? t.heads[head] : undefined })));
  const open = sectionOf(path, sections) as Tab;
  const elsewhere = single && ofAccounts.includes(path.split("/")[2] as Tab);
  return (
    <Page title={t.title}>
      <Sections base="/settings" label={t.section} sections={sections} open={elsewhere ? "" : open}>
        {elsewhere ? <div class="note">{t.single}</div> : parts[open]()}
      </Sections>
    </Page>
  );
}
