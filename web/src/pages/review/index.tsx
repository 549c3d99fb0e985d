import { Route, Router } from "preact-iso";
import { reviews } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Empty } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { Queue } from "./queue";
import { Version } from "./version";
import "./review.css";

/** Review shows the queue, or one version. */
export default function Review() {
  return (
    <Router>
      <Route path="/" component={PendingReviews} />
      <Route path="/:skill/:number" component={Version} />
      <Route default component={PendingReviews} />
    </Router>
  );
}

function PendingReviews() {
  return (
    <Page title={msg("review.title")} lead={msg("review.lead")}>
      {reviews.value ? <Queue /> : <Empty title={msg("review.notYou")}>{msg("review.notYouText")}</Empty>}
    </Page>
  );
}
