import { render } from "preact";
import { lazy } from "preact-iso";
import { App, type Pages } from "./app/app";
import { startLanguage } from "./shared/i18n/choice";
import { loadRest, type Messages, setMessageFiles } from "./shared/i18n/messages";
import "./shared/style/tokens.css";
import "./shared/style/base.css";
import "./shared/ui/ui.css";

// No other module imports this one: a new page or message changes this file only.
setMessageFiles(
  import.meta.glob<Messages>("./shared/i18n/*.json", { query: "?start", import: "default" }),
  import.meta.glob<Messages>("./shared/i18n/*.json", { query: "?rest", import: "default" }),
);

/** withMessages loads a page together with the messages that only such pages use. */
const withMessages = async <T,>(page: Promise<T>): Promise<T> => (await Promise.all([page, loadRest()]))[0];

const pages: Pages = {
  Chat: lazy(() => import("./pages/chat")),
  Library: lazy(() => import("./pages/library")),
  Account: lazy(() => import("./pages/account")),
  Approvals: lazy(() => import("./pages/approvals")),
  Review: lazy(() => withMessages(import("./pages/review"))),
  Compose: lazy(() => withMessages(import("./pages/compose"))),
  Agents: lazy(() => withMessages(import("./pages/agents"))),
  Servers: lazy(() => withMessages(import("./pages/servers"))),
  Usage: lazy(() => withMessages(import("./pages/usage"))),
  Audit: lazy(() => withMessages(import("./pages/audit"))),
  Settings: lazy(() => withMessages(import("./pages/settings"))),
  Admin: lazy(() => withMessages(import("./pages/admin"))),
  ApprovalDialog: lazy(() => import("./features/approvals/dialog")),
  SignInResult: lazy(() => withMessages(import("./pages/servers/signinresult"))),
};

await startLanguage();
render(<App pages={pages} />, document.getElementById("app")!);
