import { lazy, Route, Router, useRoute } from "preact-iso";
import { Detail } from "./detail";
import { List } from "./list";
import "./library.css";

const Add = lazy(() => import("./add"));

/** The library: all skills, one of them, and ways for more to get there. */
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

/** Each skill is a page of its own: nothing of another stays. */
function One() {
  const id = useRoute().params.id ?? "";
  return <Detail key={id} id={id} />;
}
