import { Page } from "../shell/page";

export default function Asks() {
  return <Page title="asks">…</Page>;
}
