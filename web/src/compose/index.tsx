import { Page } from "../shell/page";

export default function Compose() {
  return <Page title="compose">…</Page>;
}
