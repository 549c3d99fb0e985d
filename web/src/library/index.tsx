import { Page } from "../shell/page";

export default function Library() {
  return <Page title="library">…</Page>;
}
