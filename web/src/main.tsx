import { render } from "preact";
import { App, type Pages } from "./app/app";
import { startLanguage } from "./shared/i18n/choice";
import { loadRest, type Messages, setMessageFiles } from "./shared/i18n/messages";
import { lazyPart } from "./shared/ui/lazypart";
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
  Chat: lazyPart(() => import("./pages/chat")),
  Library: lazyPart(() => import("./pages/library")),
  Account: lazyPart(() => import("./pages/account")),
  Approvals: lazyPart(() => import("./pages/approvals")),
  Review: lazyPart(() => withMessages(import("./pages/review"))),
  Compose: lazyPart(() => withMessages(import("./pages/compose"))),
  Agents: lazyPart(() => withMessages(import("./pages/agents"))),
  Servers: lazyPart(() => withMessages(import("./pages/servers"))),
  Usage: lazyPart(() => withMessages(import("./pages/usage"))),
  Audit: lazyPart(() => withMessages(import("./pages/audit"))),
  Settings: lazyPart(() => withMessages(import("./pages/settings"))),
  Admin: lazyPart(() => withMessages(import("./pages/admin"))),
  ApprovalDialog: lazyPart(() => import("./features/approvals/dialog")),
  SignInResult: lazyPart(() => withMessages(import("./pages/servers/signinresult"))),
};

await startLanguage();
render(<App pages={pages} />, document.getElementById("app")!);
