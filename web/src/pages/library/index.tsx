import { Route, Router, useRoute } from "preact-iso";
import { withRest } from "../../shared/i18n/messages";
import { lazyPart } from "../../shared/ui/lazypart";
import { List } from "./list";
import "./library.css";

// The list is small; the page of a skill needs the Markdown parser, diagrams and diffs.
const Detail = lazyPart(() => withRest(import("./detail")));
const Add = lazyPart(() => withRest(import("./add")));

/** Library shows the list, a skill, or the page to add skills. */
export default function Library() {
  return (
    <Router>
      <Route path="/" component={List} />
      <Route path="/add" component={Add} />
      <Route path="/add/*" component={Add} />
      <Route path="/:id" component={One} />
    </Router>
  );
}

/** One is a page for each skill. A new skill starts with fresh state. */
function One() {
  const id = useRoute().params.id ?? "";
  return <Detail key={id} id={id} />;
}
