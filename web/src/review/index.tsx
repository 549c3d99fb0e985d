import { Page } from "../shell/page";

export default function Review() {
  return <Page title="review">…</Page>;
}
