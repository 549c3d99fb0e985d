import { Page } from "../shell/page";

export default function Audit() {
  return <Page title="audit">…</Page>;
}
