import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from "preact-iso";
import { Everywhere } from "../features/approvals/dialog";
import type { TestChatPart } from "../features/resources/testchat";
import { overlay } from "../features/shortcuts/commands";
import { listen, useShortcut } from "../features/shortcuts/keys";
import { away, signedOut } from "../shared/api/client";
import { me, loadMe } from "../shared/api/me";
import { msg } from "../shared/i18n/messages";
import { loadProblemPatterns } from "../shared/servertext";
import { Button, Empty, Problem, Toasts, Waiting } from "../shared/ui";
import { loadAhead, outdated } from "../shared/ui/lazypart";
import { Page } from "../shared/ui/page";
import { hasUnsaved } from "../shared/ui/unsaved";
import { Nav } from "./nav";
import "./app.css";
// The style of the start page comes with the page, without a request of its own.
import "../pages/chat/start.css";

type Preloaded = ComponentType & { preload: () => Promise<unknown> };

/** The pages of the app. Each is loaded when it is opened. */
export type Pages = Record<
  | "Chat"
  | "Library"
  | "Account"
  | "Approvals"
  | "Review"
  | "Compose"
  | "Servers"
  | "Usage"
  | "Audit"
  | "Settings"
  | "Docs"
  | "Admin"
  | "Invite"
  | "SignInResult",
  ComponentType
> &
  Record<"Palette" | "ShortcutSheet", Preloaded> & {
    /** Shows a shared conversation, also without a sign-in. It calls onRefused if that is not allowed. */
    Shared: ComponentType<{ onRefused?: () => void }>;
    Agents: ComponentType<{ TestChat: TestChatPart }>;
    TestChat: TestChatPart;
  };

interface AppProps {
  pages: Pages;
  /** The first request for the signed-in user, sent while the language is loaded. */
  user: Promise<void>;
}

export function App(props: AppProps) {
  return (
    <LocationProvider>
      <Inside {...props} />
      <Toasts />
    </LocationProvider>
  );
}

/** Inside shows the app, or the sign-in if nobody is signed in. */
function Inside({ pages, user }: AppProps) {
  const [error, setError] = useState<Error>();
  const { path, query } = useLocation();
  const [refused, setRefused] = useState("");
  useEffect(() => void user.catch(setError), []);
  const again = () => {
    setError(undefined);
    loadMe().catch(setError);
  };
  useEffect(watchConnection, []);
  if (error)
    return (
      <div class="door">
        <div class="card">
          <Problem error={error} again={again} />
        </div>
      </div>
    );
  if (path.startsWith("/invite/") && (signedOut.value || me.value))
    return (
      <ErrorBoundary>
        <pages.Invite />
      </ErrorBoundary>
    );
  if (signedOut.value && path.startsWith("/docs"))
    return (
      <ErrorBoundary>
        <main class="shared" id="main" tabIndex={-1}>
          <pages.Docs />
        </main>
      </ErrorBoundary>
    );
  if (signedOut.value)
    return (
      <ErrorBoundary>
        {path.startsWith("/shared/") && refused !== path ? (
          <main class="shared" id="main" tabIndex={-1}>
            <pages.Shared onRefused={() => setRefused(path)} />
          </main>
        ) : (
          <pages.Account />
        )}
      </ErrorBoundary>
    );
  if (!me.value)
    return (
      <div class="door">
        <Waiting for={msg("shell.starting")} />
      </div>
    );
  return (
    <div class="shell">
      <a class="skip" href="#main">
        {msg("shell.skip")}
      </a>
      <Nav />
      <Everywhere />
      <main class="main" id="main" tabIndex={-1}>
        {away.value && (
          <div class="away" role="status">
            {msg("shell.away")}
          </div>
        )}
        {outdated.value && (
          <div class="away" role="status">
            {msg("shell.outdated")} <Reload />
          </div>
        )}
        <Routes pages={pages} />
      </main>
      <Front pages={pages} />
      {query.signin && (
        <ErrorBoundary>
          <pages.SignInResult />
        </ErrorBoundary>
      )}
    </div>
  );
}

/** Front shows the palette or the list of shortcuts, and opens them by their keys. */
function Front({ pages }: { pages: Pages }) {
  const { route } = useLocation();
  useEffect(listen, []);
  useEffect(
    () => loadAhead([loadProblemPatterns, () => pages.Palette.preload(), () => pages.ShortcutSheet.preload()]),
    [],
  );
  useEffect(() => () => void (overlay.value = undefined), []); // signing in again opens nothing
  useShortcut("palette", () => (overlay.value = "palette"));
  useShortcut("sheet", () => (overlay.value = "sheet"));
  useShortcut("fresh", () => !hasUnsaved() && route("/"));
  return (
    <ErrorBoundary>
      {overlay.value === "palette" && <pages.Palette />}
      {overlay.value === "sheet" && <pages.ShortcutSheet />}
    </ErrorBoundary>
  );
}

function Routes({ pages }: { pages: Pages }) {
  const [broken, setBroken] = useState<Error>();
  if (broken) return <Broken error={broken} />;
  return (
    <ErrorBoundary onError={setBroken}>
      <Router onRouteChange={() => setBroken(undefined)}>
        <Route path="/" component={pages.Chat} />
        <Route path="/chat/*" component={pages.Chat} />
        <Route path="/library" component={pages.Library} />
        <Route path="/library/*" component={pages.Library} />
        <Route path="/review" component={pages.Review} />
        <Route path="/review/*" component={pages.Review} />
        <Route path="/compose" component={pages.Compose} />
        <Route path="/compose/*" component={pages.Compose} />
        <Route path="/agents" component={pages.Agents} TestChat={pages.TestChat} />
        <Route path="/agents/*" component={pages.Agents} TestChat={pages.TestChat} />
        <Route path="/servers" component={pages.Servers} />
        <Route path="/servers/*" component={pages.Servers} />
        <Route path="/asks" component={pages.Approvals} />
        <Route path="/usage" component={pages.Usage} />
        <Route path="/audit" component={pages.Audit} />
        <Route path="/settings" component={pages.Settings} />
        <Route path="/settings/*" component={pages.Settings} />
        <Route path="/docs" component={pages.Docs} />
        <Route path="/docs/*" component={pages.Docs} />
        <Route path="/shared/*" component={pages.Shared} />
        <Route path="/admin" component={pages.Admin} />
        <Route path="/admin/*" component={pages.Admin} />
        <Route default component={PageNotFound} />
      </Router>
    </ErrorBoundary>
  );
}

const Reload = () => (
  <Button look="primary" onClick={() => location.reload()}>
    {msg("shell.reload")}
  </Button>
);

function PageNotFound() {
  return (
    <Page title={msg("shell.nowhere")}>
      <Empty
        title={msg("shell.nowhereText")}
        actions={
          <a class="button primary" href="/">
            {msg("shell.home")}
          </a>
        }
      />
    </Page>
  );
}

function Broken({ error }: { error: Error }) {
  return (
    <Page title={msg("shell.broken")}>
      <p>{msg("shell.brokenText")}</p>
      <pre class="note bad">{error.message}</pre>
      <div>
        <Reload />
      </div>
    </Page>
  );
}

/** watchConnection checks every two seconds whether an unreachable hub is back. */
function watchConnection() {
  const timer = setInterval(() => {
    if (!away.value) return;
    fetch("/healthz")
      .then((r) => r.ok && (away.value = false))
      .catch(() => {});
  }, 2000);
  return () => clearInterval(timer);
}
