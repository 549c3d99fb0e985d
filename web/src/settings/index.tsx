import { Page } from "../shell/page";

export default function Settings() {
  return <Page title="settings">…</Page>;
}
