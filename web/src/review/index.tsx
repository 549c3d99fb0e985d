import { Route, Router } from "preact-iso";
import { reviews } from "../api/me";
import { Page } from "../shell/page";
import { Empty } from "../ui";
import { Queue } from "./queue";
import { Version } from "./version";
import { w } from "./words";
import "./review.css";

/** Reviewing: what waits, and one version with all that a decision needs. */
export default function Review() {
  return (
    <Router>
      <Route path="/" component={Waits} />
      <Route path="/:skill/:number" component={Version} />
      <Route default component={Waits} />
    </Router>
  );
}

function Waits() {
  return <Page title={w().title} lead={w().lead}>{reviews.value ? <Queue /> : <Empty title={w().notYou}>{w().notYouText}</Empty>}</Page>;
}
