import { Page } from "../shell/page";

export default function Servers() {
  return <Page title="servers">…</Page>;
}
