import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso";
import { Groups } from "../../features/settings/groups";
import { SignIns } from "../../features/settings/signins";
import { Tokens } from "../../features/settings/tokens";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Page } from "../../shared/ui/page";
import { type Section, sectionOf, Sections } from "../../shared/ui/sections";
import { Appearance } from "./appearance";
import { Defaults } from "./defaults";
import { Grants } from "./grants";
import { Migrate } from "./migrate";
import { Notices } from "./notifications";
import { Password } from "./password";
import { Profile } from "./profile";
import { Secrets } from "./secrets";
import { Shares } from "./shares";
import { Storage } from "./storage";

type Tab =
  | "profile"
  | "appearance"
  | "password"
  | "sign-ins"
  | "tokens"
  | "secrets"
  | "grants"
  | "defaults"
  | "groups"
  | "storage"
  | "migrate"
  | "shares"
  | "notices";

const parts: Record<Tab, () => ComponentChildren> = {
  profile: () => <Profile />,
  password: () => <Password />,
  "sign-ins": () => <SignIns />,
  tokens: () => <Tokens />,
  secrets: () => <Secrets />,
  grants: () => <Grants />,
  notices: () => <Notices />,
  defaults: () => <Defaults />,
  groups: () => <Groups base="/settings/groups" />,
  storage: () => <Storage />,
  migrate: () => <Migrate />,
  shares: () => <Shares />,
  appearance: () => <Appearance />,
};

// The sections that a single-user hub does not have.
const ofAccounts: Tab[] = ["password", "sign-ins", "tokens", "shares"];
const order: ["you" | "work" | "access", Tab[]][] = [
  ["you", ["profile", "appearance", "notices"]],
  ["work", ["defaults", "groups", "storage", "shares", "migrate"]],
  ["access", ["password", "sign-ins", "tokens", "secrets", "grants"]],
];

/** Settings has the personal settings. */
export default function Settings() {
  const { path } = useLocation();

  const single = ways.value?.mode === "single";
  const sections: Section[] = order.flatMap(([head, tabs]) =>
    tabs
      .filter((id) => !(single && ofAccounts.includes(id)))
      .map((id, i) => ({
        id,
        text: msg(`settings.tabs.${id}`),
        head: i === 0 ? msg(`settings.heads.${head}`) : undefined,
      })),
  );
  const open = sectionOf(path, sections) as Tab;
  const elsewhere = single && ofAccounts.includes(path.split("/")[2] as Tab);
  return (
    <Page title={msg("settings.title")}>
      <Sections base="/settings" label={msg("settings.section")} sections={sections} open={elsewhere ? "" : open}>
        {elsewhere ? <div class="note">{msg("settings.single")}</div> : parts[open]()}
      </Sections>
    </Page>
  );
}
