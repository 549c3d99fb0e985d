import { Page } from "../shell/page";

export default function Agents() {
  return <Page title="agents">…</Page>;
}
