import { render } from "preact";
import { App, type Pages } from "./app/app";
import { loadMe } from "./shared/api/me";
import { startLanguage } from "./shared/i18n/choice";
import { type Messages, setMessageFiles, withRest } from "./shared/i18n/messages";
import { failed } from "./shared/ui";
import { lazyPart } from "./shared/ui/lazypart";
import "./shared/style/tokens.css";
import "./shared/style/base.css";
import "./shared/ui/ui.css";

// No other module imports this one: a new page or message changes this file only.
setMessageFiles(
  import.meta.glob<Messages>("./shared/i18n/*.json", { query: "?start", import: "default" }),
  import.meta.glob<Messages>("./shared/i18n/*.json", { query: "?rest", import: "default" }),
);

const pages = {
  Chat: lazyPart(() => import("./pages/chat")),
  Library: lazyPart(() => import("./pages/library")),
  Account: lazyPart(() => import("./pages/account")),
  Approvals: lazyPart(() => import("./pages/approvals")),
  Review: lazyPart(() => withRest(import("./pages/review"))),
  Compose: lazyPart(() => withRest(import("./pages/compose"))),
  Agents: lazyPart(() => withRest(import("./pages/agents"))),
  TestChat: lazyPart(() => import("./pages/chat/testconversation")),
  Servers: lazyPart(() => withRest(import("./pages/servers"))),
  Usage: lazyPart(() => withRest(import("./pages/usage"))),
  Audit: lazyPart(() => withRest(import("./pages/audit"))),
  Settings: lazyPart(() => withRest(import("./pages/settings"))),
  Docs: lazyPart(() => withRest(import("./pages/docs"))),
  Admin: lazyPart(() => withRest(import("./pages/admin"))),
  Shared: lazyPart(() => withRest(import("./pages/share"))),
  Invite: lazyPart(() => withRest(import("./pages/invite"))),
  SignInResult: lazyPart(() => withRest(import("./pages/servers/signinresult"))),
  Palette: lazyPart(() => withRest(import("./app/palette"))),
  ShortcutSheet: lazyPart(() => withRest(import("./app/shortcutsheet"))),
} satisfies Pages;

// No error stays silent: one that nothing catches is shown. The browser still reports it, so tests fail.
addEventListener("error", (e) => e.error && failed(e.error));
addEventListener("unhandledrejection", (e) => failed(e.reason));

// The page of the address is loaded together with the language and the user.
const { Chat, Library, Review, Compose, Agents, Servers, Usage, Audit, Settings, Docs, Shared, Invite, Admin } = pages;
const byPath: Record<string, { preload: () => Promise<unknown> } | undefined> = {
  ...{ "": Chat, chat: Chat, library: Library, review: Review, compose: Compose, agents: Agents, servers: Servers },
  ...{ usage: Usage, audit: Audit, settings: Settings, docs: Docs, shared: Shared, invite: Invite, admin: Admin },
};
void byPath[location.pathname.split("/")[1] ?? ""]?.preload();
const user = loadMe();
user.catch(() => {}); // shown by the app
void startLanguage().then(() => render(<App pages={pages} user={user} />, document.getElementById("app")!));
