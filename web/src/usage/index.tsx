import { Page } from "../shell/page";

export default function Usage() {
  return <Page title="usage">…</Page>;
}
