import { Page } from "../shell/page";

export default function Admin() {
  return <Page title="admin">…</Page>;
}
