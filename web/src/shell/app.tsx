import { ErrorBoundary, lazy, LocationProvider, Route, Router, useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { away, signedOut } from "../api/client";
import { me, meet } from "../api/me";
import { Button, Empty, Problem, Toasts, Waiting } from "../ui";
import { Nav } from "./nav";
import { Page } from "./page";
import { w } from "./words";
import "./shell.css";

// Each part of the page is fetched when it is opened.
const Chat = lazy(() => import("../chat"));
const Library = lazy(() => import("../library"));
const Review = lazy(() => import("../review"));
const Compose = lazy(() => import("../compose"));
const Agents = lazy(() => import("../agents"));
const Servers = lazy(() => import("../servers"));
const Asks = lazy(() => import("../asks"));
const Usage = lazy(() => import("../usage"));
const Audit = lazy(() => import("../audit"));
const Settings = lazy(() => import("../settings"));
const Admin = lazy(() => import("../admin"));
const Door = lazy(() => import("../account"));
const Everywhere = lazy(() => import("../asks/everywhere"));
const Returned = lazy(() => import("../servers/returned"));

export function App() {
  return (
    <LocationProvider>
      <Inside />
      <Toasts />
    </LocationProvider>
  );
}

/** Decides whether the page or its door is shown. */
function Inside() {
  const [error, setError] = useState<Error>();
  const { query } = useLocation();
  const start = () => {
    setError(undefined);
    meet().catch(setError);
  };
  useEffect(start, []);
  useEffect(watchConnection, []);
  if (error) return <div class="door"><div class="card"><Problem error={error} again={start} /></div></div>;
  if (signedOut.value) return <ErrorBoundary><Door /></ErrorBoundary>;
  if (!me.value) return <div class="door"><Waiting for={w().starting} /></div>;
  return (
    <div class="shell">
      <a class="skip" href="#main">{w().skip}</a>
      <Nav />
      <main class="main" id="main" tabIndex={-1}>
        {away.value && <div class="away" role="status">{w().away}</div>}
        <Parts />
      </main>
      <ErrorBoundary><Everywhere /></ErrorBoundary>
      {query.signin && <ErrorBoundary><Returned /></ErrorBoundary>}
    </div>
  );
}

function Parts() {
  const [broken, setBroken] = useState<Error>();
  if (broken) return <Broken error={broken} />;
  return (
    <ErrorBoundary onError={setBroken}>
      <Router onRouteChange={() => setBroken(undefined)}>
        <Route path="/" component={Chat} />
        <Route path="/chat/*" component={Chat} />
        <Route path="/library" component={Library} />
        <Route path="/library/*" component={Library} />
        <Route path="/review" component={Review} />
        <Route path="/review/*" component={Review} />
        <Route path="/compose" component={Compose} />
        <Route path="/compose/*" component={Compose} />
        <Route path="/agents" component={Agents} />
        <Route path="/agents/*" component={Agents} />
        <Route path="/servers" component={Servers} />
        <Route path="/servers/*" component={Servers} />
        <Route path="/asks" component={Asks} />
        <Route path="/usage" component={Usage} />
        <Route path="/audit" component={Audit} />
        <Route path="/settings" component={Settings} />
        <Route path="/settings/*" component={Settings} />
        <Route path="/admin" component={Admin} />
        <Route path="/admin/*" component={Admin} />
        <Route default component={Nowhere} />
      </Router>
    </ErrorBoundary>
  );
}

function Nowhere() {
  return (
    <Page title={w().nowhere}>
      <Empty title={w().nowhereText} actions={<a class="button primary" href="/">{w().home}</a>} />
    </Page>
  );
}

function Broken({ error }: { error: Error }) {
  return (
    <Page title={w().broken}>
      <p>{w().brokenText}</p>
      <pre class="note bad">{error.message}</pre>
      <div><Button look="primary" onClick={() => location.reload()}>{w().reload}</Button></div>
    </Page>
  );
}

/** While the hub is away it is asked whether it is back. */
function watchConnection() {
  const timer = setInterval(() => {
    if (!away.value) return;
    fetch("/healthz").then((r) => r.ok && (away.value = false)).catch(() => {});
  }, 2000);
  return () => clearInterval(timer);
}
